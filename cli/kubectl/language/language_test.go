package language

import "testing"

func TestIsKubectl(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want bool
	}{
		{[]string{"evenkeel", "kubectl", "get"}, true},
		{[]string{"/usr/bin/kubectl", "get"}, true},
		{[]string{"kubectl.exe"}, true},
		{[]string{"evenkeel", "serve"}, false},
		{[]string{"evenkeel", "help", "kubectl"}, false},
		{[]string{"/opt/kubectl/evenkeel"}, false},
		{nil, false},
	} {
		if got := IsKubectl(tt.args); got != tt.want {
			t.Errorf("%q: %v, want %v", tt.args, got, tt.want)
		}
	}
}
