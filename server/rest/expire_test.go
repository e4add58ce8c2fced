package rest_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestOldEventsExpire(t *testing.T) {
	const events = "/api/v1/namespaces/default/events"
	api, clock := newAPIAt(t, time.Now())
	for _, name := range []string{"old", "counted"} {
		mustCreate(t, api, events, `{"metadata":{"name":"`+name+`"},"involvedObject":{"namespace":"default"}}`)
	}
	clock.Add(50 * time.Minute)
	mustCreate(t, api, events, `{"metadata":{"name":"new"},"involvedObject":{"namespace":"default"}}`)
	if got := send(api, "PATCH", events+"/counted", "application/merge-patch+json", "", []byte(`{"count":2}`)); got.Code != http.StatusOK {
		t.Fatal(got.Body)
	}
	clock.Add(20 * time.Minute)
	if err := api.ExpireEvents(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	list := send(api, "GET", events, "", "", nil).Body.String()
	for name, want := range map[string]bool{"old": false, "counted": true, "new": true} {
		if got := strings.Contains(list, `"name":"`+name+`"`); got != want {
			t.Errorf("%s is there: %v, want %v", name, got, want)
		}
	}
}
