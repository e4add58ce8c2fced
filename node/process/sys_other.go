//go:build !unix

package process

import (
	"os"
	"os/exec"

	corev1 "k8s.io/api/core/v1"
)

// Systems without signals and process groups: a process is killed, alone.

var killSignal = os.Kill

func stopSignal(*corev1.Lifecycle) os.Signal { return os.Kill }

func own(*exec.Cmd) {}

func signalGroup(leader int, s os.Signal) {
	if p, err := os.FindProcess(leader); err == nil {
		_ = p.Signal(s) // it may have ended
	}
}

func killGroup(int) {}

func signalOf(*os.ProcessState) int32 { return 0 }
