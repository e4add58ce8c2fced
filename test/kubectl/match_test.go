package kubectl

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// forms are what stands for text that differs from run to run.
var forms = map[string]string{
	"<age>":    `(?:\d+[smhd])+`,
	"<time>":   `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z|\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d \+0000`,
	"<uid>":    `[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}`,
	"<ip>":     `\d+\.\d+\.\d+\.\d+`,
	"<port>":   `\d{4,5}`,
	"<number>": `\d+`,
	"<word>":   `\S+`,
}

var (
	blanks = regexp.MustCompile(`[ \t]+`)
	form   = regexp.MustCompile(`<[a-z]+>`)
)

// match compares output with what is wanted.
func match(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg)
	if len(args) != 2 {
		ts.Fatalf("usage: match stdout|stderr|file want")
	}
	got, want := ts.ReadFile(args[0]), ts.ReadFile(args[1])
	if trouble := compare(lines(got), lines(want)); trouble != "" {
		ts.Fatalf("%s is not like %s: %s", args[0], args[1], trouble)
	}
}

// lines cuts text into lines, with one blank for many.
func lines(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		out = append(out, strings.TrimSpace(blanks.ReplaceAllString(line, " ")))
	}
	for len(out) > 0 && out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out
}

// compare says what is wrong, or nothing.
func compare(got, want []string) string {
	for i, w := range want {
		if w == "..." {
			return compareAfter(got, want[i+1:])
		}
		if len(got) == 0 {
			return fmt.Sprintf("line %d is missing: %s", i+1, w)
		}
		if !pattern(w).MatchString(got[0]) {
			return fmt.Sprintf("line %d is not: %s\nbut: %s", i+1, w, got[0])
		}
		got = got[1:]
	}
	if len(got) > 0 {
		return "there is more: " + got[0]
	}
	return ""
}

// compareAfter skips any lines.
func compareAfter(got, want []string) string {
	trouble := ""
	for skip := range len(got) + 1 {
		t := compare(got[skip:], want)
		if t == "" {
			return ""
		}
		if len(t) > 0 && (trouble == "" || skip == 0) {
			trouble = "after three dots, " + t
		}
	}
	return trouble
}

func pattern(line string) *regexp.Regexp {
	var b strings.Builder
	last := 0
	for _, at := range form.FindAllStringIndex(line, -1) {
		known, ok := forms[line[at[0]:at[1]]]
		if !ok {
			continue
		}
		b.WriteString(regexp.QuoteMeta(line[last:at[0]]))
		b.WriteString("(?:" + known + ")")
		last = at[1]
	}
	b.WriteString(regexp.QuoteMeta(line[last:]))
	return regexp.MustCompile("^" + b.String() + "$")
}

func TestCompare(t *testing.T) {
	tests := map[string]struct {
		got, want string
		same      bool
	}{
		"the same":               {"a b\n", "a b\n", true},
		"other blanks":           {"a    b\n", "a b\n", true},
		"another line":           {"a b\n", "a c\n", false},
		"a line too many":        {"a\nb\n", "a\n", false},
		"a line too few":         {"a\n", "a\nb\n", false},
		"an age":                 {"web 12s\n", "web <age>\n", true},
		"no age":                 {"web soon\n", "web <age>\n", false},
		"a word that is no form": {"IP <none>\n", "IP <none>\n", true},
		"any lines":              {"a\nb\nc\nd\n", "a\n...\nd\n", true},
		"any lines at the end":   {"a\nb\nc\n", "a\n...\n", true},
		"no lines for dots":      {"a\nd\n", "a\n...\nd\n", true},
		"not what is after dots": {"a\nb\nc\n", "a\n...\nd\n", false},
		"dots twice":             {"a\nx\nb\ny\nc\n", "a\n...\nb\n...\nc\n", true},
		"signs of expressions":   {"a.b(c)\n", "a.b(c)\n", true},
		"a dot is a dot":         {"axb\n", "a.b\n", false},
	}
	for name, tt := range tests {
		if trouble := compare(lines(tt.got), lines(tt.want)); (trouble == "") != tt.same {
			t.Errorf("%s: %q", name, trouble)
		}
	}
}
