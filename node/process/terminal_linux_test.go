package process_test

import "testing"

func needsTerminal(*testing.T) {}
