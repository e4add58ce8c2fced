package wire

import "errors"

// ErrCannotCompact is what playing a scenario returns that compacts the
// server's history, where the target offers no way to.
var ErrCannotCompact = errors.New("the target cannot compact its history")
