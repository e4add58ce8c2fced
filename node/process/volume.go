package process

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"github.com/even-keel/evenkeel/node"
)

// makeVolumes makes the volumes of a pod, or brings them up to date, and returns
// where they are.
func makeVolumes(folder string, all []node.Volume) (map[string]string, error) {
	out := map[string]string{}
	for _, v := range all {
		at := filepath.Join(folder, v.Name)
		var err error
		switch s := v.Source; {
		case s.HostPath != nil:
			at = s.HostPath.Path
			err = checkHostPath(s.HostPath)
		case s.EmptyDir != nil:
			err = os.MkdirAll(at, 0o777)
		case s.ConfigMap != nil, s.Secret != nil, s.Projected != nil, s.DownwardAPI != nil:
			err = writeFiles(at, v.Files)
		default:
			err = fmt.Errorf("the process runtime has no volumes of that kind")
		}
		if err != nil {
			return nil, &node.Failure{Reason: "FailedMount", Message: fmt.Sprintf("MountVolume.SetUp failed for volume %q : %v", v.Name, err)}
		}
		out[v.Name] = at
	}
	return out, nil
}

// checkHostPath makes what a path of the machine is to be, or says that it is not.
func checkHostPath(h *corev1.HostPathVolumeSource) error {
	kind := corev1.HostPathUnset
	if h.Type != nil {
		kind = *h.Type
	}
	switch kind {
	case corev1.HostPathUnset:
		return nil
	case corev1.HostPathDirectoryOrCreate:
		return os.MkdirAll(h.Path, 0o755)
	case corev1.HostPathFileOrCreate:
		f, err := os.OpenFile(h.Path, os.O_CREATE, 0o644)
		if err != nil {
			return err
		}
		return f.Close()
	}
	info, err := os.Stat(h.Path)
	if err != nil {
		return err
	}
	is := map[corev1.HostPathType]bool{
		corev1.HostPathDirectory: info.IsDir(), corev1.HostPathFile: info.Mode().IsRegular(), corev1.HostPathSocket: info.Mode()&fs.ModeSocket != 0,
		corev1.HostPathCharDev: info.Mode()&fs.ModeCharDevice != 0, corev1.HostPathBlockDev: info.Mode()&fs.ModeDevice != 0 && info.Mode()&fs.ModeCharDevice == 0,
	}
	if !is[kind] {
		return fmt.Errorf("hostPath type check failed: %s is not a %s", h.Path, kind)
	}
	return nil
}

// writeFiles makes a folder hold these files, and no others. Each is replaced at
// once, but not all together.
func writeFiles(folder string, files map[string]node.File) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for path, f := range files {
		if !filepath.IsLocal(filepath.FromSlash(path)) {
			return fmt.Errorf("%q leads out of the volume", path)
		}
		if err := writeFile(filepath.Join(folder, filepath.FromSlash(path)), f.Data, os.FileMode(f.Mode)&fs.ModePerm); err != nil {
			return err
		}
	}
	return filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		if _, wanted := files[filepath.ToSlash(name)]; !wanted {
			return os.Remove(path)
		}
		return nil
	})
}
