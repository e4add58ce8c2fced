package client

import (
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

type (
	inner   struct{ A, B string }
	numbers struct {
		I8  int8    `json:"i8"`
		U16 uint16  `json:"u16"`
		I   int     `json:"i"`
		F   float32 `json:"f"`
		D   time.Duration
	}
	named   string
	shallow struct {
		deep
		A string
	}
	deep  struct{ A, C string }
	twins struct {
		inner
		deep
	}
	pointing struct{ *inner }
	list     struct {
		Next  *list           `json:"next"`
		Items []list          `json:"items"`
		By    map[string]list `json:"by"`
	}
	mixed struct {
		Skipped string               `json:"-"`
		Bytes   []byte               `json:"bytes"`
		Named   map[named]named      `json:"named"`
		Ints    map[string]int       `json:"ints"`
		Ptr     **string             `json:"ptr"`
		Any     any                  `json:"any"`
		Anys    []any                `json:"anys"`
		Time    *metav1.Time         `json:"time"`
		Micro   metav1.MicroTime     `json:"micro"`
		Port    intstr.IntOrString   `json:"port"`
		Ports   []intstr.IntOrString `json:"ports"`
		Strings []named              `json:"strings"`
		Nested  [][]string           `json:"nested"`
	}
	stringed struct {
		N int `json:"n,string"`
	}
	arrays struct{ A [2]int }
)

// TestTypesOfAllSortsAreReadAsKubernetesReadsThem also covers types without a plan.
func TestTypesOfAllSortsAreReadAsKubernetesReadsThem(t *testing.T) {
	for _, test := range []struct {
		into  any
		texts []string
	}{
		{inner{}, []string{`{"A":"x","a":"y","B":null}`, `null`, `{}`, `{"A":"\u00e9\n","B":"é"}`, "{\"A\":\"\xff\"}"}},
		{numbers{}, []string{`{"i8":-128,"u16":65535,"i":-9,"f":1.5e2,"D":7}`, `{"i8":null,"f":3}`}},
		{shallow{}, []string{`{"A":"x","C":"z"}`}},
		{twins{}, []string{`{"A":"x","B":"y","C":"z"}`}},
		{pointing{}, []string{`{"C":"x"}`}},
		{list{}, []string{`{"next":{"next":{"items":[{},{"next":null}]}},"by":{"a":{"by":{}}}}`}},
		{mixed{}, []string{
			`{"Skipped":"s","bytes":"aGk=","named":{"a":"b"},"ints":{"x":1},"ptr":"p","any":{"n":1,"f":1.5},"anys":[1,"a",null],"hidden":"h"}`,
			`{"time":"2026-01-02T03:04:05Z","micro":"2026-01-02T03:04:05.000006Z","port":8080,"ports":["http",80],"strings":["a","b"],"nested":[[],["a"],null]}`,
			`{"time":null,"micro":null,"bytes":null,"named":null,"ints":null,"ptr":null,"any":null,"anys":null,"ports":[],"strings":null}`,
			`{"strings":["a","b","c"],"strings":["d"],"ints":{"a":1},"ints":{"b":2},"nested":[["a","b"]],"nested":[["c"]]}`,
			`{"unknown":{"a":[1,"]}",{}],"b":"\""},"bytes":""}`,
		}},
		{stringed{}, []string{`{"n":"7"}`}},
		{arrays{}, []string{`{"A":[1,2]}`}},
		{map[string]any{}, []string{`{"a":{"b":[1,2.5]}}`}},
	} {
		for _, text := range test.texts {
			compareDecoders(t, reflect.TypeOf(test.into), []byte(text))
		}
	}
}

func TestWhatIsNotOfTheTypeIsRefused(t *testing.T) {
	for into, texts := range map[any][]string{
		new(inner):   {`[]`, `{"A":1}`, `{"A":"x"`, `{"A" "x"}`, `{"A":"x",}`, `{"A":"x"} x`, ``, `{A:1}`, `{"A":`, `"`},
		new(numbers): {`{"i8":128}`, `{"u16":-1}`, `{"i":1.5}`, `{"f":"1"}`, `{"f":1e99}`, `{"i":}`},
		new(mixed):   {`{"bytes":"!"}`, `{"bytes":[1]}`, `{"ints":[]}`, `{"strings":{}}`, `{"time":"yesterday"}`, `{"time":}`, `{"any":tru}`, `{"unknown":{"a"}`},
		new(bool):    {`1`, `tru`, `fals`},
	} {
		for _, text := range texts {
			if err := decodeJSON([]byte(text), into); err == nil {
				t.Errorf("%T takes %s", into, text)
			}
		}
	}
	deepest := make([]byte, 0, 100_000)
	for range 20_000 {
		deepest = append(deepest, `{"next":`...)
	}
	if err := decodeJSON(deepest, new(list)); err == nil {
		t.Error("a value without end is taken")
	}
}
