package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const sample = `package v1

// Mode is prose that must not be copied.
// +enum
type Mode string

const (
	// ModeB comes second.
	ModeB Mode = "b"
	ModeA      = Mode("a")
	ModeC      = Mode(other.Borrowed)
	Unrelated  = "u"
)

// Plain has no facts.
type Plain struct {
	Name string ` + "`json:\"name\"`" + `
}

// Thing is a struct.
// +structType=atomic
// +union
type Thing struct {
	Plain ` + "`json:\",inline\"`" + `
	// Kind says which.
	// +unionDiscriminator
	Kind string ` + "`json:\"kind\"`" + `
	// +optional
	A string ` + "`json:\"a\"`" + `
	// +optional
	B string ` + "`json:\"b,omitempty\"`" + `
	// +required
	C string ` + "`json:\"c,omitempty\"`" + `
	// +listType=map
	// +listMapKey=x
	// +listMapKey=y
	D []Plain ` + "`json:\"d,omitempty\"`" + `
	// +default={"k": "v w"}
	E *Plain ` + "`json:\"e,omitempty\"`" + `
	// +default=ref(ModeB)
	// +mapType=granular
	F Mode ` + "`json:\"f,omitempty\"`" + `
	// +optional
	Hidden string ` + "`json:\"-\"`" + `
}
`

func TestBlocks(t *testing.T) {
	s := readSample(t, sample)
	s.settle(map[string]*source{})
	got, err := s.blocks("p")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"enum p.Mode a,b\n",
		"type p.Thing map=atomic union\n" +
			"\tkind discriminator\n" +
			"\ta optional\n" +
			"\tc required\n" +
			"\td list=map keys=x,y\n" +
			"\te default={\"k\": \"v w\"}\n" +
			"\tf map=granular default=\"b\"\n",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDocs(t *testing.T) {
	s := readSample(t, `package v1

// Thing is a struct. It
// has lines.
//
// And more, which is left out.
// +union
type Thing struct {
	// list has values:
	//
	// - one: 1) and
	//   more of it
	// - two \\
	// +optional
	List string `+"`json:\"list\"`"+`
	Bare string `+"`json:\"bare\"`"+`
}

type Silent struct {
	A string `+"`json:\"a\"`"+`
}

// Conversion is for webhooks.
type Conversion struct{}
`)
	want := []string{"doc p.Thing Thing is a struct. It has lines.\n" +
		"\tlist list has values:\\n\\n- one: 1) and more of it\\n- two \\\\\\\\\n"}
	if diff := cmp.Diff(want, s.docBlocks("p")); diff != "" {
		t.Error(diff)
	}
}

func TestConstantsOfOtherPackages(t *testing.T) {
	s := readSample(t, "package v1\n\nimport other \"x/other\"\n"+sample[len("package v1"):])
	s.settle(map[string]*source{"x/other": readSample(t, "package other\n\nconst Borrowed = \"c\"\n")})
	got, err := s.blocks("p")
	if err != nil {
		t.Fatal(err)
	}
	if want := "enum p.Mode a,b,c\n"; got[0] != want {
		t.Errorf("got %q, want %q", got[0], want)
	}
}

func TestBadDefaults(t *testing.T) {
	for name, marker := range map[string]string{"not JSON": "TCP", "no such constant": "ref(Missing)"} {
		t.Run(name, func(t *testing.T) {
			s := readSample(t, "package v1\n\ntype T struct {\n\t// +default="+marker+"\n\tA string `json:\"a\"`\n}\n")
			if blocks, err := s.blocks("p"); err == nil {
				t.Errorf("accepted: %q", blocks)
			}
		})
	}
}

func readSample(t *testing.T, text string) *source {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "types.go"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := readSource(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
