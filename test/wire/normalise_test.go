package wire

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// parse reads JSON as the harness reads an answer.
func parse(t *testing.T, s string) any {
	t.Helper()
	v := parseBody("application/json", []byte(s))
	if _, isText := v.(string); isText && !json.Valid([]byte(s)) {
		t.Fatalf("no JSON: %s", s)
	}
	return v
}

func TestNormalise(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"id in values and keys":        {`{"a-id12345x":"b.id12345x.c"}`, `{"a-<id>":"b.<id>.c"}`},
		"uids, in keys too":            {`{"k:{\"uid\":\"0b54c9a8-3f0e-4c0c-9d2b-5a1c6d7e8f90\"}":"0B54c9a8-3f0e-4c0c-9d2b-5a1c6d7e8f90"}`, `{"k:{\"uid\":\"<uid>\"}":"<uid>"}`},
		"revisions":                    {`[{"resourceVersion":"12"},{"resourceVersion":""},{"resourceVersion":"0"}]`, `[{"resourceVersion":"<rv>"},{"resourceVersion":""},{"resourceVersion":"0"}]`},
		"a number elsewhere":           {`{"data":{"n":"12"},"generation":12}`, `{"data":{"n":"12"},"generation":12}`},
		"continue":                     {`{"metadata":{"continue":"abc"}}`, `{"metadata":{"continue":"<continue>"}}`},
		"an empty continue":            {`{"metadata":{"continue":""}}`, `{"metadata":{"continue":""}}`},
		"continue that is data":        {`{"data":{"continue":"abc"}}`, `{"data":{"continue":"abc"}}`},
		"times":                        {`["2026-11-15T01:02:03Z","2022-01-01T00:00:00.000001Z","2021-12-31T23:59:59Z"]`, `["<time>","<microtime>","2021-12-31T23:59:59Z"]`},
		"a time with an offset":        {`["2031-01-01T00:00:00+02:00"]`, `["<time>"]`},
		"a generated name":             {`{"metadata":{"generateName":"web-","name":"web-x7k2p"}}`, `{"metadata":{"generateName":"web-","name":"web-<gen>"}}`},
		"a name that was given":        {`{"metadata":{"generateName":"web-","name":"web-other"}}`, `{"metadata":{"generateName":"web-","name":"web-other"}}`},
		"a generated name in a Status": {`{"details":{"name":"sent-x7k2p"},"message":"x \"sent-x7k2p\" is bad"}`, `{"details":{"name":"sent-<gen>"},"message":"x \"sent-<gen>\" is bad"}`},
		"cluster addresses":            {`{"clusterIP":"10.0.0.7","clusterIPs":["10.0.0.7","fd00::7"]}`, `{"clusterIP":"<ip>","clusterIPs":["<ip>","<ip>"]}`},
		"a headless service":           {`{"clusterIP":"None","clusterIPs":["None"]}`, `{"clusterIP":"None","clusterIPs":["None"]}`},
		"another address":              {`{"podIP":"10.1.2.3"}`, `{"podIP":"10.1.2.3"}`},
		"node ports":                   {`{"ports":[{"nodePort":31234,"port":80}],"healthCheckNodePort":30001}`, `{"ports":[{"nodePort":"<nodeport>","port":80}],"healthCheckNodePort":"<nodeport>"}`},
		"a node port in a message":     {`{"message":"spec.ports[0].nodePort: Invalid value: 31234: provided port is already allocated"}`, `{"message":"spec.ports[0].nodePort: Invalid value: <nodeport>: provided port is already allocated"}`},
		"cells":                        {`{"rows":[{"cells":["p","0/1","2 (5s ago)","2m3s","10.0.0.1","80:31234/TCP,443/TCP","10.0.0.1,10.0.0.2",5]}]}`, `{"rows":[{"cells":["p","0/1","2 (<age> ago)","<age>","<ip>","80:<nodeport>/TCP,443/TCP","<ip>,<ip>",5]}]}`},
		"an age that is no cell":       {`{"ttl":"5s"}`, `{"ttl":"5s"}`},
		"a token":                      {`{"status":{"token":"a.b.c"}}`, `{"status":{"token":"<token>"}}`},
		"a token of other form":        {`{"data":{"token":"abc"}}`, `{"data":{"token":"abc"}}`},
		"a hash":                       {`{"storageVersionHash":"Sx1="}`, `{"storageVersionHash":"<hash>"}`},
		"too large a revision":         {`{"message":"Timeout: Too large resource version: 999, current: 12"}`, `{"message":"Timeout: Too large resource version: <rv>, current: <rv>"}`},
		"too old a revision":           {`{"message":"too old resource version: 1 (55)"}`, `{"message":"too old resource version: <rv> (<rv>)"}`},
		"a revision in a precondition": {`{"message":"the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (2)."}`, `{"message":"the ResourceVersion in the precondition (<rv>) does not match the ResourceVersion in record (<rv>)."}`},
		"a revision in a store error":  {`{"message":"Key: /a, ResourceVersion: 0, AdditionalErrorMsg"}`, `{"message":"Key: /a, ResourceVersion: <rv>, AdditionalErrorMsg"}`},
		"a revision that is invalid":   {`{"message":"metadata.resourceVersion: Invalid value: 0: must be specified"}`, `{"message":"metadata.resourceVersion: Invalid value: 0: must be specified"}`},
		"an object in a message":       {`{"message":"Invalid value: \"{\\\"apiVersion\\\":\\\"v1\\\",\\\"a\\\":\\\"\\\\\\\"\\\"}\": no \"x\""}`, `{"message":"Invalid value: \"<object>\": no \"x\""}`},
		"managers": {
			`{"managedFields":[{"manager":"b"},{"manager":"a","operation":"Update"},{"manager":"a","operation":"Apply"},{"manager":"a","operation":"Apply","subresource":"x"}]}`,
			`{"managedFields":[{"manager":"a","operation":"Apply"},{"manager":"a","operation":"Apply","subresource":"x"},{"manager":"a","operation":"Update"},{"manager":"b"}]}`},
		"causes": {
			`{"kind":"Status","apiVersion":"v1","message":"Pod \"p\" is invalid: [spec.b: two, spec.a: one]","details":{"causes":[{"field":"spec.b","message":"two"},{"field":"spec.a","message":"one"}]}}`,
			`{"kind":"Status","apiVersion":"v1","message":"Pod \"p\" is invalid: [spec.a: one, spec.b: two]","details":{"causes":[{"field":"spec.a","message":"one"},{"field":"spec.b","message":"two"}]}}`},
		"causes that come twice": {
			`{"kind":"Status","apiVersion":"v1","message":"x is invalid: [b: 2, a: 1]","details":{"causes":[{"field":"b","message":"2"},{"field":"a","message":"1"},{"field":"b","message":"2"}]}}`,
			`{"kind":"Status","apiVersion":"v1","message":"x is invalid: [a: 1, b: 2]","details":{"causes":[{"field":"a","message":"1"},{"field":"b","message":"2"},{"field":"b","message":"2"}]}}`},
		"a message that lists no causes": {
			`{"kind":"Status","apiVersion":"v1","message":"x is invalid: [something else]","details":{"causes":[{"field":"a","message":"1"}]}}`,
			`{"kind":"Status","apiVersion":"v1","message":"x is invalid: [something else]","details":{"causes":[{"field":"a","message":"1"}]}}`},
		"equal numbers": {`[1.0, 1e2, 1.5, 9223372036854775807]`, `[1, 100, 1.5, 9223372036854775807]`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			n := normaliser{id: "id12345x", generated: []string{"sent-"}}
			got := n.body(parse(t, tt.in))
			if diff := cmp.Diff(parse(t, tt.want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNormaliseText(t *testing.T) {
	n := normaliser{id: "id12345x"}
	in := "metadata:\n  name: a-id12345x\n  resourceVersion: \"12\"\n  creationTimestamp: \"2026-01-01T00:00:00Z\"\n"
	want := "metadata:\n  name: a-<id>\n  resourceVersion: \"<rv>\"\n  creationTimestamp: \"<time>\"\n"
	if got := n.body(in); got != want {
		t.Errorf("got %q", got)
	}
}

func TestLookup(t *testing.T) {
	body := parse(t, `{"a":{"b":[{"type":"X","c":1},{"type":"Ready","c":2,"meta":{"name":"n"}}],"x.y/z":"dotted"},"n":null}`)
	tests := map[string]struct {
		want any
		ok   bool
	}{
		"":                           {body, true},
		"a.b.1.c":                    {int64(2), true},
		"a.b[type=Ready].c":          {int64(2), true},
		"a.b[meta.name=n].type":      {"Ready", true},
		"a.b[c=1].type":              {"X", true},
		"a['x.y/z']":                 {"dotted", true},
		"n":                          {nil, true},
		"a.b.2":                      {nil, false},
		"a.b.-1":                     {nil, false},
		"a.b[type=Nope].c":           {nil, false},
		"a[type=Ready]":              {nil, false},
		"n.x":                        {nil, false},
		"a.b[type":                   {nil, false},
		"a['x.y/z":                   {nil, false},
		"a.b[type=Ready].meta.name.": {"n", true},
	}
	for path, tt := range tests {
		got, ok := lookup(body, path)
		if diff := cmp.Diff(tt.want, got); diff != "" || ok != tt.ok {
			t.Errorf("%q: ok %v, (-want +got):\n%s", path, ok, diff)
		}
	}
}

func TestSelectedAndSorted(t *testing.T) {
	body := parse(t, `{"kind":"L","items":[{"name":"b"},{"name":"a"}]}`)
	sortLists(body, []string{"items"})
	got := selected(body, []string{"items.0.name", "items.9"})
	if diff := cmp.Diff(map[string]any{"items.0.name": "a", "items.9": nil}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	status := parse(t, `{"kind":"Status","apiVersion":"v1","code":404}`)
	if diff := cmp.Diff(status, selected(status, []string{"kind"})); diff != "" {
		t.Errorf("a Status is kept whole (-want +got):\n%s", diff)
	}
}

func TestRequestsAreExpanded(t *testing.T) {
	v := variables{"c": "a/b+c=&d e", "id": "x"}
	path, err := v.expandPath("/p?continue=${c}&n=${id}")
	if want := "/p?continue=a%2Fb%2Bc%3D%26d%20e&n=x"; path != want || err != nil {
		t.Errorf("path %q, %v, want %q", path, err, want)
	}
	body, err := v.expandValue(map[string]any{"z": "${id}-1", "a${id}": []any{"<&>", json.Number("1.50"), nil, true}})
	if err != nil {
		t.Fatal(err)
	}
	sent, err := encodeBody(body)
	if want := `{"ax":["<&>",1.50,null,true],"z":"x-1"}`; string(sent) != want || err != nil {
		t.Errorf("body %s, %v, want %s", sent, err, want)
	}
	if _, err := v.expand("${nope}", nil); err == nil || !strings.Contains(err.Error(), "${nope}") {
		t.Errorf("an unknown variable gives %v", err)
	}
}

func TestRelations(t *testing.T) {
	v := variables{"rv": "9"}
	body := parse(t, `{"rv":"10","same":"9"}`)
	got := v.relations([]relation{{"rv", "gt", "rv"}, {"rv", "eq", "rv"}, {"rv", "ne", "rv"}, {"same", "eq", "rv"},
		{"gone", "ne", "rv"}, {"rv", "gt", "gone"}, {"same", "gt", "rv"}}, body)
	want := map[string]bool{"rv gt rv": true, "rv eq rv": false, "rv ne rv": true, "same eq rv": true,
		"gone ne rv": false, "rv gt gone": false, "same gt rv": false}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
