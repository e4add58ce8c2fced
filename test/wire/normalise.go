package wire

import (
	"net/netip"
	"regexp"
	"strings"
)

// normaliser replaces what differs from run to run by what the recording has
// in its place. It is pure: it returns copies.
type normaliser struct {
	id string // the run's ${id}
	// generated are the generateName prefixes that the scenario has sent.
	generated []string
}

// place is where a value stands: its key, and that of the object around it.
type place struct {
	key, parent string
	cell        bool // in the cells of a table row
}

// body normalises an answer's body and puts its unordered lists in order.
func (n normaliser) body(v any) any {
	if s, ok := v.(string); ok {
		return n.text(s)
	}
	return ordered(n.value(v, place{}))
}

func (n normaliser) value(v any, at place) any {
	switch v := v.(type) {
	case map[string]any:
		return n.object(v, at)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = n.value(e, place{key: at.key, parent: at.parent, cell: at.cell || at.key == "cells"})
		}
		return out
	case string:
		return n.str(v, at)
	case int64:
		if at.key == "nodePort" || at.key == "healthCheckNodePort" {
			return "<nodeport>"
		}
	}
	return v
}

func (n normaliser) object(m map[string]any, at place) any {
	if prefix, ok := m["generateName"].(string); ok && prefix != "" {
		n.generated = append([]string{prefix}, n.generated...)
	}
	out := make(map[string]any, len(m))
	for k, e := range m {
		out[n.anywhere(k)] = n.value(e, place{key: k, parent: at.key})
	}
	return out
}

// str normalises a string by where it stands.
func (n normaliser) str(s string, at place) string {
	switch {
	case at.key == "resourceVersion" && s != "" && s != "0":
		return "<rv>"
	case at.key == "continue" && at.parent == "metadata" && s != "":
		return "<continue>"
	case at.key == "storageVersionHash":
		return "<hash>"
	case at.key == "token" && strings.Count(s, ".") == 2:
		return "<token>"
	case (at.key == "clusterIP" || at.key == "clusterIPs") && isAddress(s):
		return "<ip>"
	case at.key == "message":
		return n.message(s)
	case at.cell:
		return n.cell(s)
	}
	return n.anywhere(s)
}

var (
	uuid = regexp.MustCompile(`(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)
	// Times of the year 2022 or later; earlier ones were sent by the client.
	recent = regexp.MustCompile(`\b(?:202[2-9]|20[3-9]\d|2[1-9]\d\d)-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(?:Z|[+-]\d\d:\d\d)`)
)

// anywhere replaces what is replaced in every string and every key.
func (n normaliser) anywhere(s string) string {
	s = uuid.ReplaceAllString(s, "<uid>")
	if n.id != "" {
		s = strings.ReplaceAll(s, n.id, "<id>")
	}
	s = recent.ReplaceAllStringFunc(s, func(t string) string {
		if strings.Contains(t, ".") {
			return "<microtime>"
		}
		return "<time>"
	})
	for _, prefix := range n.generated {
		s = replaceGenerated(s, prefix)
	}
	return s
}

// suffix is what the server adds to a generateName: five characters of these.
const suffix = `[bcdfghjklmnpqrstvwxz2456789]{5}`

func replaceGenerated(s, prefix string) string {
	if !strings.Contains(s, prefix) {
		return s
	}
	re := regexp.MustCompile(`(^|[^\w.-])(` + regexp.QuoteMeta(prefix) + `)` + suffix + `($|[^\w-])`)
	return re.ReplaceAllString(s, "${1}${2}<gen>${3}")
}

var (
	// "Too large resource version: 9", "too old resource version: 1 (5)",
	// "ResourceVersion: 5", "resourceVersion 5".
	revision = regexp.MustCompile(`(?i)(\bresource ?version:? )\d+(?: \((\d+)\))?`)
	// "the ResourceVersion in the precondition (1) ... in record (5)".
	revisionIn = regexp.MustCompile(`(ResourceVersion in (?:the precondition|record) )\(\d+\)`)
	current    = regexp.MustCompile(`(\bcurrent: )\d+`)
	// An object quoted as a whole.
	quoted = regexp.MustCompile(`Invalid value: "\{\\"(?:[^"\\]|\\.)*"`)
	// A node port that the server chose or refused.
	nodePort = regexp.MustCompile(`(Invalid value: )\d{5}(: provided port)`)
)

func (n normaliser) message(s string) string {
	s = n.anywhere(s)
	s = revision.ReplaceAllStringFunc(s, func(found string) string {
		m := revision.FindStringSubmatch(found)
		if m[2] != "" {
			return m[1] + "<rv> (<rv>)"
		}
		return m[1] + "<rv>"
	})
	s = revisionIn.ReplaceAllString(s, "${1}(<rv>)")
	s = current.ReplaceAllString(s, "${1}<rv>")
	s = quoted.ReplaceAllString(s, `Invalid value: "<object>"`)
	return nodePort.ReplaceAllString(s, "${1}<nodeport>${2}")
}

var (
	age      = regexp.MustCompile(`^(?:\d+[smhdy])+$`)
	ageInner = regexp.MustCompile(`\((?:\d+[smhdy])+ ago\)`) // of restarts: "2 (5s ago)"
	portCell = regexp.MustCompile(`(\b\d+:)\d+(/[A-Z]+)`)    // "80:31234/TCP"
)

func (n normaliser) cell(s string) string {
	if age.MatchString(s) {
		return "<age>"
	}
	words := strings.Split(s, ",")
	for i, w := range words {
		if isAddress(w) {
			words[i] = "<ip>"
		}
	}
	s = strings.Join(words, ",")
	s = ageInner.ReplaceAllString(s, "(<age> ago)")
	return n.anywhere(portCell.ReplaceAllString(s, "${1}<nodeport>${2}"))
}

var textRevision = regexp.MustCompile(`(resourceVersion: )"[1-9]\d*"`)

// text normalises a body that is not JSON: YAML, or a line of prose.
func (n normaliser) text(s string) string {
	return textRevision.ReplaceAllString(n.anywhere(s), `${1}"<rv>"`)
}

// warning normalises a Warning header.
func (n normaliser) warning(s string) string { return n.message(s) }

func isAddress(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil
}
