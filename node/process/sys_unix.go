//go:build unix

package process

import (
	"os"
	"os/exec"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
)

const killSignal = syscall.SIGKILL

// signals are those that a container can ask for, by their names.
var signals = map[string]syscall.Signal{
	"SIGTERM": syscall.SIGTERM, "SIGINT": syscall.SIGINT, "SIGQUIT": syscall.SIGQUIT, "SIGHUP": syscall.SIGHUP,
	"SIGUSR1": syscall.SIGUSR1, "SIGUSR2": syscall.SIGUSR2, "SIGKILL": syscall.SIGKILL,
}

// stopSignal is the one by which a container is told to end.
func stopSignal(l *corev1.Lifecycle) os.Signal {
	if l != nil && l.StopSignal != nil {
		if s, known := signals[strings.ToUpper(string(*l.StopSignal))]; known {
			return s
		}
	}
	return syscall.SIGTERM
}

// own has a command be the leader of a process group.
func own(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// signalGroup sends a signal to all processes of a group; there may be none.
func signalGroup(leader int, s os.Signal) { _ = syscall.Kill(-leader, s.(syscall.Signal)) }

func killGroup(leader int) { signalGroup(leader, killSignal) }

// signalOf is the signal that ended a process; 0 if none did.
func signalOf(s *os.ProcessState) int32 {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return int32(w.Signal())
	}
	return 0
}
