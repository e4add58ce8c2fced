//go:build linux

package lean

import (
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"reflect"
	"syscall"
	"unsafe"
)

// Skip has Record throw away what comes, without copying it, and count only how
// long it is, until Resume. All that was recorded must have been read, and end with
// a record.
func (t *Tape) Skip() { t.skips = true }

// skip is Record meanwhile.
func (t *Tape) skip() (int, error) {
	n, _, err := syscall.Recvfrom(t.fd, t.mem, syscall.MSG_TRUNC) // of a TCP socket: nothing is written to mem
	switch {
	case errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("skip what a watch gets: %w", err)
	case n == 0:
		return 0, io.EOF
	}
	t.skipped += int64(n)
	return n, nil
}

// Keep ends Skip: what comes from now on is recorded, and must begin with a record.
// Before it can be read Resume has to find out how many records are missing.
func (t *Tape) Keep() { t.skips = false }

// mostSkipped is more records than a tape skips.
const mostSkipped = 1 << 20

// Resume has the connection go on with the first record that was recorded after what
// was skipped. Records are numbered, and what they are encrypted with depends on the
// number, which is found by trying: so it is known how many are missing, and how much
// payload that was. It reports false if no record has come yet.
func (t *Tape) Resume(c *Conn) (bool, error) {
	if t.skipped == 0 {
		return true, nil
	}
	if t.w-t.r < recordHead || t.w-t.r < recordHead+int(binary.BigEndian.Uint16(t.mem[t.r+3:])) {
		return false, nil
	}
	head := t.mem[t.r : t.r+recordHead]
	body := t.mem[t.r+recordHead:][:binary.BigEndian.Uint16(head[3:])]
	aead, number, err := incoming(c)
	if err != nil {
		return false, err
	}
	first := binary.BigEndian.Uint64(number[:])
	for missing := range uint64(mostSkipped) {
		var nonce [8]byte
		binary.BigEndian.PutUint64(nonce[:], first+missing)
		if _, err := aead.Open(nil, nonce[:], body, head); err == nil {
			*number = nonce
			t.payload += t.skipped - int64(missing)*(recordHead+recordOverhead)
			t.skipped = 0
			return true, nil
		}
	}
	return false, fmt.Errorf("%w: no record follows what was skipped", ErrProtocol)
}

// incoming is what crypto/tls decrypts with, and where it keeps the number of the
// next record: it has no other way to leave records out.
func incoming(c *Conn) (cipher.AEAD, *[8]byte, error) {
	in := reflect.ValueOf(c.tls).Elem().FieldByName("in")
	if !in.IsValid() || !in.FieldByName("cipher").IsValid() || in.FieldByName("seq").Type() != reflect.TypeFor[[8]byte]() {
		return nil, nil, errors.New("this version of Go keeps a connection's state elsewhere")
	}
	aead, ok := (*(*any)(unsafe.Pointer(in.FieldByName("cipher").UnsafeAddr()))).(cipher.AEAD)
	if !ok {
		return nil, nil, fmt.Errorf("%w: not TLS 1.3", ErrProtocol)
	}
	return aead, (*[8]byte)(unsafe.Pointer(in.FieldByName("seq").UnsafeAddr())), nil
}
