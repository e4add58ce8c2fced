package process

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/even-keel/evenkeel/node/remote"
)

// openTerminal returns a new terminal: our end of it, and the one for a process.
func openTerminal() (ours, theirs *os.File, err error) {
	// What does not block can be closed while somebody reads.
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("open a terminal: %w", err)
	}
	ours = os.NewFile(uintptr(fd), "/dev/ptmx")
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		_ = ours.Close()
		return nil, nil, fmt.Errorf("open a terminal: %w", err)
	}
	return ours, theirs, nil
}

// resize sets the size of a terminal; its processes get a signal.
func resize(terminal *os.File, s remote.Size) error {
	raw, err := terminal.SyscallConn()
	if err != nil {
		return err
	}
	return errorOf(raw.Control(func(fd uintptr) {
		err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: s.Height, Col: s.Width})
	}), err)
}

func errorOf(first, second error) error {
	if first != nil {
		return first
	}
	return second
}

// ownTerminal has a command lead a session, with its input as the terminal of that.
func ownTerminal(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
}
