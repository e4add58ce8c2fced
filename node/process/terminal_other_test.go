//go:build unix && !linux

package process_test

import "testing"

func needsTerminal(t *testing.T) { t.Skip("there are terminals on Linux only") }
