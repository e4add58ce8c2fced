package webhook

import (
	"context"
	"net"
)

// SetDial replaces the network.
func (c *Client) SetDial(dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	c.pool.dial = dial
}
