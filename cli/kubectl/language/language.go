// Package language keeps kubectl's translations from being loaded when something
// else is run: kubectl's packages ask for them before main begins, and they are
// the largest part of what linking kubectl costs.
//
// It must be initialised before they are, so it imports next to nothing.
package language

import (
	"os"
	"path/filepath"
	"strings"

	"k8s.io/kubectl/pkg/util/i18n"
)

func init() {
	_ = i18n.SetLoadTranslationsFunc(func() error { // fails only if they were loaded
		if !IsKubectl(os.Args) {
			return nil
		}
		return i18n.LoadTranslations("kubectl", nil)
	})
}

// IsKubectl says whether a command line runs kubectl: as a command of evenkeel, or
// by the name that evenkeel is called.
func IsKubectl(args []string) bool {
	if len(args) > 1 && args[1] == "kubectl" {
		return true
	}
	return len(args) > 0 && Named(args[0])
}

// Named says whether a program is called kubectl.
func Named(program string) bool {
	return strings.TrimSuffix(filepath.Base(program), ".exe") == "kubectl"
}
