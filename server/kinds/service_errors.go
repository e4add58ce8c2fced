package kinds

import (
	"errors"
	"fmt"
)

// Errors that the functions of [ServicePool] return for what they cannot give;
// clients see their texts.
var (
	ErrServiceIPTaken   = errors.New("provided IP is already allocated")
	ErrServicePortTaken = errors.New("provided port is already allocated")
	ErrServiceRangeFull = errors.New("range is full")
)

// ErrServiceIPOutside is for an address that is not of the range.
func ErrServiceIPOutside(ip, cidr string) error {
	return fmt.Errorf("the provided IP (%v) is not in the valid range. The range of valid IPs is %s", ip, cidr)
}

// ErrServicePortOutside is for a port that is not of the range ("30000-32767").
func ErrServicePortOutside(ports string) error {
	return fmt.Errorf("provided port is not in the valid range. The range of valid ports is %s", ports)
}
