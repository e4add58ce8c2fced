package process

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/even-keel/evenkeel/node"
)

// stateFile is where a container that runs says which process it is. Tasks beside it
// have files of their own, in the same folder.
const stateFile = "process.json"

// leftover is a process that an agent started, which may have ended without it. Born
// tells it from another that got its number.
type leftover struct {
	PID  int
	Born string
}

// findLeftovers takes up the pods that have a folder, and kills what runs of them.
func (r *Runtime) findLeftovers() error {
	folders, err := os.ReadDir(r.podsFolder())
	if err != nil {
		return err
	}
	for _, f := range folders {
		folder := filepath.Join(r.podsFolder(), f.Name())
		if err := r.killLeftovers(folder); err != nil {
			return err
		}
		var id node.PodID
		data, err := os.ReadFile(filepath.Join(folder, podFile))
		if err == nil {
			err = json.Unmarshal(data, &id)
		}
		if err != nil || string(id.UID) != f.Name() { // its making was not finished
			if err := os.RemoveAll(folder); err != nil {
				return err
			}
			continue
		}
		r.pods[id] = &pod{id: id, folder: folder, containers: map[string]*container{}}
	}
	return nil
}

func (r *Runtime) killLeftovers(folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "containers", "*", "*.json"))
	if err != nil {
		return err
	}
	for _, file := range files {
		var l leftover
		data, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(data, &l)
		}
		if err == nil && l.PID > 0 && l.Born != "" && born(l.PID) == l.Born {
			r.log.Info("kills what an agent left behind", "pid", l.PID)
			killGroup(l.PID)
		}
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	return nil
}

// born is when a process began, as the system counts; "" if it does not tell. The
// command's name, in parentheses, may hold anything.
func born(pid int) string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(data[strings.LastIndexByte(string(data), ')')+1:]), " ")
	fields := strings.Fields(rest)
	const startTime = 22 - 3 // counted from the state, which is the third
	if len(fields) <= startTime {
		return ""
	}
	return fields[startTime]
}
