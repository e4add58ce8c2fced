//go:build linux

package lean

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"
)

// Tape is the socket of a connection, read into memory as it comes: nothing is
// decrypted until somebody wants to know. TLS records show how much payload there
// is meanwhile. One goroutine uses it, and the connection, at a time.
type Tape struct {
	fd   int
	mem  []byte
	r, w int // mem[r:w] is recorded and not yet played
	// next is where the next record begins, payload the length of all that have begun.
	next    int
	payload int64
	last    time.Time
	// skips says that nothing is recorded, skipped how long it was.
	skips   bool
	skipped int64
}

// ErrDry says that all that was recorded has been read.
var ErrDry error = dry{}

// dry is an error after which crypto/tls goes on.
type dry struct{}

func (dry) Error() string   { return "nothing more has been recorded" }
func (dry) Timeout() bool   { return true }
func (dry) Temporary() bool { return true }

// Tape takes the connection's socket away from Go: whoever reads the connection
// gets what the tape has, or [ErrDry]. Close closes it as before.
func (c *Conn) Tape(size int) (*Tape, error) {
	below, ok := c.tls.NetConn().(*buffered)
	if !ok || below.tape != nil {
		return nil, errors.New("the connection has a tape already")
	}
	plain, ok := below.Conn.(syscall.Conn)
	if !ok {
		return nil, fmt.Errorf("%T has no socket", below.Conn)
	}
	raw, err := plain.SyscallConn()
	if err != nil {
		return nil, err
	}
	t := &Tape{mem: make([]byte, max(size, below.w-below.r))}
	if controlErr := raw.Control(func(fd uintptr) { t.fd, err = duplicate(fd) }); controlErr != nil || err != nil {
		return nil, errors.Join(controlErr, err)
	}
	t.w = copy(t.mem, below.in[below.r:below.w])
	below.tape, below.in = t, nil
	return t, below.Conn.Close()
}

func duplicate(fd uintptr) (int, error) {
	n, _, errno := syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_DUPFD_CLOEXEC, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(n), nil
}

// Socket is what to wait for before Record.
func (t *Tape) Socket() int { return t.fd }

// Record reads from the socket once, without waiting, and returns how much came.
// It returns [io.EOF] at the end.
func (t *Tape) Record() (int, error) {
	if t.skips {
		n, err := t.skip()
		if n > 0 {
			t.last = time.Now()
		}
		return n, err
	}
	if t.r == t.w { // what was read makes room
		t.next -= t.w
		t.r, t.w = 0, 0
	}
	if t.w == len(t.mem) {
		return 0, fmt.Errorf("more than the %d bytes that the tape holds", len(t.mem))
	}
	n, err := syscall.Read(t.fd, t.mem[t.w:])
	switch {
	case errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("read a watch: %w", err)
	case n == 0:
		return 0, io.EOF
	}
	t.w += n
	t.last = time.Now()
	return n, t.scan()
}

// scan looks at the heads of the records that have come.
func (t *Tape) scan() error {
	for t.w-t.next >= recordHead {
		head := t.mem[t.next : t.next+recordHead]
		length := int(binary.BigEndian.Uint16(head[3:]))
		if head[0] != recordData || length < recordOverhead {
			return fmt.Errorf("%w: a TLS record that begins with % x", ErrProtocol, head)
		}
		t.next += recordHead + length
		t.payload += int64(length - recordOverhead)
	}
	return nil
}

// Payload is the length of all records that have begun since the last Rewind. Of
// what is skipped it is the length with all that TLS adds, until Resume.
func (t *Tape) Payload() int64 { return t.payload + t.skipped }

// Last is when something was recorded last.
func (t *Tape) Last() time.Time { return t.last }

// Rewind has the tape begin anew, on other memory if mem is not nil. All that was
// recorded must have been read, and end with a record.
func (t *Tape) Rewind(mem []byte) error {
	if t.r != t.w {
		return fmt.Errorf("%d bytes of a tape were not read", t.w-t.r)
	}
	if mem != nil {
		t.mem = mem
	}
	t.r, t.w, t.next, t.payload, t.skipped = 0, 0, 0, 0, 0
	return nil
}

// play is what crypto/tls reads.
func (t *Tape) play(p []byte) (int, error) {
	if t.r == t.w {
		return 0, ErrDry
	}
	n := copy(p, t.mem[t.r:t.w])
	t.r += n
	return n, nil
}

// write sends the little that a watcher has to say.
func (t *Tape) write(p []byte) (int, error) { return syscall.Write(t.fd, p) }

func (t *Tape) close() error { return syscall.Close(t.fd) }

var _ net.Error = dry{}
