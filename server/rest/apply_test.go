package rest_test

import (
	"net/http"
	"strings"
	"testing"
)

func TestApplyOfWhatDoesNotExist(t *testing.T) {
	api := newAPI(t)
	for name, test := range map[string]struct {
		metadata string
		code     int
		message  string
	}{
		"plain":      {`"labels":{"a":"b"}`, http.StatusCreated, ""},
		"a uid":      {`"uid":"11111111-1111-4111-8111-111111111111"`, http.StatusConflict, "uid mismatch: the provided object specified uid 11111111-1111-4111-8111-111111111111, and no existing object was found"},
		"a revision": {`"resourceVersion":"5"`, http.StatusCreated, ""},
		"no number":  {`"resourceVersion":"abc"`, http.StatusInternalServerError, `strconv.ParseUint: parsing \"abc\": invalid syntax`},
	} {
		t.Run(name, func(t *testing.T) {
			object := strings.ReplaceAll(name, " ", "-")
			body := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + object + `",` + test.metadata + `}}`
			got := send(api, "PATCH", "/api/v1/namespaces/default/configmaps/"+object+"?fieldManager=m", "application/apply-patch+yaml", "", []byte(body))
			if got.Code != test.code || !strings.Contains(got.Body.String(), test.message) {
				t.Errorf("%d %s", got.Code, got.Body)
			}
		})
	}
}
