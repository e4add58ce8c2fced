package etcd

import (
	"crypto/tls"
	"errors"
	"strings"
	"testing"

	"github.com/even-keel/evenkeel/storage"
)

func TestOptionsThatCannotWorkAreRefused(t *testing.T) {
	secured := &tls.Config{}
	for name, test := range map[string]struct {
		options Options
		says    string
	}{
		"no endpoints":             {Options{}, "no endpoints"},
		"an empty endpoint":        {Options{Endpoints: []string{"http://a:1", ""}}, "empty"},
		"a user, no password":      {Options{Endpoints: []string{"a:1"}, Username: "u"}, "password"},
		"a password, no user":      {Options{Endpoints: []string{"a:1"}, Password: "p"}, "user"},
		"TLS for a plain endpoint": {Options{Endpoints: []string{"http://a:1"}, TLS: secured}, "http://a:1"},
		"plain and secure":         {Options{Endpoints: []string{"https://a:1", "http://b:1"}}, "http://b:1"},
		"plain and by TLS":         {Options{Endpoints: []string{"a:1", "http://b:1"}, TLS: secured}, "http://b:1"},
		"a very long prefix":       {Options{Endpoints: []string{"a:1"}, Prefix: strings.Repeat("x", maxPrefixBytes)}, "prefix"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(t.Context(), test.options)
			if !errors.Is(err, storage.ErrInvalid) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want ErrInvalid that says %q", err, test.says)
			}
		})
	}
}

func TestAPrefixEndsWithASlash(t *testing.T) {
	for given, want := range map[string]string{"": "/evenkeel/", "a": "a/", "/a/": "/a/", "\xff": "\xff/"} {
		o, err := Options{Endpoints: []string{"a:1"}, Prefix: given}.complete()
		if err != nil || o.Prefix != want {
			t.Errorf("%q becomes %q, error %v; want %q", given, o.Prefix, err, want)
		}
	}
}
