package cli

import (
	"errors"
	"path/filepath"
)

// adminKubeconfig is the file in the data directory by which one reaches a
// local server as its administrator.
const adminKubeconfig = "admin.kubeconfig"

// defaultDataDir is where a local server keeps its data: $XDG_DATA_HOME/evenkeel
// or ~/.local/share/evenkeel.
func defaultDataDir(getenv func(string) string) (string, error) {
	if dir := getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "evenkeel"), nil
	}
	if home := getenv("HOME"); home != "" {
		return filepath.Join(home, ".local", "share", "evenkeel"), nil
	}
	return "", errors.New("there is no home directory to keep data in")
}
