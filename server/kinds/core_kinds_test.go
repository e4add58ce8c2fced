package kinds

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

func TestCoreDefaults(t *testing.T) {
	for name, tc := range map[string]struct{ resource, doc, want string }{
		"text over bytes":      {"secrets", `{"type":"","data":{"a":"YQ==","b":"Yg=="},"stringData":{"a":"x"}}`, `{"data":{"a":"eA==","b":"Yg=="},"metadata":{},"type":"Opaque"}`},
		"capacity":             {"nodes", `{"metadata":{"name":"n"},"status":{"capacity":{"cpu":"4"}}}`, `{"metadata":{"name":"n"},"spec":{"taints":[{"effect":"NoSchedule","key":"node.kubernetes.io/not-ready"}]},"status":{"allocatable":{"cpu":"4"},"capacity":{"cpu":"4"}}}`},
		"range":                {"nodes", `{"spec":{"podCIDR":"10.0.0.0/24"}}`, `{"metadata":{},"spec":{"podCIDR":"10.0.0.0/24","podCIDRs":["10.0.0.0/24"],"taints":[{"effect":"NoSchedule","key":"node.kubernetes.io/not-ready"}]},"status":{}}`},
		"ranges":               {"nodes", `{"spec":{"podCIDRs":["10.0.0.0/24"]}}`, `{"metadata":{},"spec":{"podCIDR":"10.0.0.0/24","podCIDRs":["10.0.0.0/24"],"taints":[{"effect":"NoSchedule","key":"node.kubernetes.io/not-ready"}]},"status":{}}`},
		"namespace":            {"namespaces", `{"metadata":{"name":"n","labels":{"kubernetes.io/metadata.name":"other"}}}`, `{"metadata":{"labels":{"kubernetes.io/metadata.name":"n"},"name":"n"},"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}}`},
		"yet without a name":   {"namespaces", `{"metadata":{"generateName":"n-"},"spec":{"finalizers":["a.b/c"]}}`, `{"metadata":{"generateName":"n-"},"spec":{"finalizers":["a.b/c","kubernetes"]},"status":{"phase":"Active"}}`},
		"secrets of accounts":  {"serviceaccounts", `{"secrets":[{"name":"s","namespace":"x","uid":"u"}],"automountServiceAccountToken":false}`, `{"automountServiceAccountToken":false,"metadata":{},"secrets":[{"name":"s"}]}`},
		"coordinated election": {"leases", `{"spec":{"strategy":"OldestEmulationVersion","preferredHolder":"x","holderIdentity":"h"}}`, `{"metadata":{},"spec":{"holderIdentity":"h"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			k := coreKindOf(t, tc.resource)
			obj := coreObject(t, k, tc.doc)
			if k.Default != nil {
				again := obj.DeepCopyObject()
				k.Default(again)
				if !equality.Semantic.DeepEqual(obj, again) {
					t.Error("defaults are not idempotent")
				}
			}
			if k.PrepareCreate != nil {
				k.PrepareCreate(obj)
			}
			got := coreJSON(t, obj)
			if s, ok := got["status"].(map[string]any); ok {
				for _, key := range []string{"daemonEndpoints", "nodeInfo"} {
					delete(s, key)
				}
			}
			b, err := json.Marshal(got)
			if err != nil || string(b) != tc.want {
				t.Errorf("got  %s\nwant %s", b, tc.want)
			}
		})
	}
}

func TestCoreValidation(t *testing.T) {
	big := strings.Repeat("x", corev1.MaxSecretSize+1)
	for name, tc := range map[string]struct {
		resource, doc string
		want          []string
	}{
		"good node":           {"nodes", `{"metadata":{"name":"n"},"spec":{"taints":[{"key":"a","effect":"NoSchedule"}],"podCIDRs":["10.0.0.0/24","fd00::/64"]}}`, nil},
		"taints":              {"nodes", `{"spec":{"taints":[{"key":"a","effect":"NoSchedule"},{"key":"a","effect":"NoSchedule"},{"key":"b"}]}}`, []string{`FieldValueDuplicate metadata.taints[1]: Duplicate value: {"key":"a","effect":"NoSchedule"}: taints must be unique by key and effect pair`, `FieldValueRequired metadata.taints[2].effect: Required value`}},
		"two ranges of v4":    {"nodes", `{"spec":{"podCIDRs":["10.0.0.0/24","10.0.1.0/24"]}}`, []string{`FieldValueInvalid spec.podCIDRs: Invalid value: ["10.0.0.0/24","10.0.1.0/24"]: may specify no more than one CIDR for each IP family`}},
		"negative capacity":   {"nodes", `{"status":{"capacity":{"cpu":"-1"},"allocatable":{}}}`, []string{`FieldValueInvalid status.capacity.cpu: Invalid value: "-1": must be greater than or equal to 0`}},
		"finalizer":           {"namespaces", `{"spec":{"finalizers":["x"]}}`, []string{`FieldValueInvalid spec.finalizers: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified`}},
		"config map":          {"configmaps", `{"data":{"a":"","..":""},"binaryData":{"a":""}}`, []string{`FieldValueInvalid data[..]: Invalid value: "..": must not be '..'`, `FieldValueInvalid data[a]: Invalid value: "a": duplicate of key present in binaryData`}},
		"too much":            {"configmaps", `{"data":{"a":"` + big + `"}}`, []string{`FieldValueTooLong []: Too long: may not be more than 1048576 bytes`}},
		"tls":                 {"secrets", `{"type":"kubernetes.io/tls","data":{}}`, []string{`FieldValueRequired data[tls.crt]: Required value`, `FieldValueRequired data[tls.key]: Required value`}},
		"docker":              {"secrets", `{"type":"kubernetes.io/dockerconfigjson","stringData":{".dockerconfigjson":"["}}`, []string{`FieldValueInvalid data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": unexpected end of JSON input`}},
		"old docker":          {"secrets", `{"type":"kubernetes.io/dockercfg"}`, []string{`FieldValueRequired data[.dockercfg]: Required value`}},
		"basic auth":          {"secrets", `{"type":"kubernetes.io/basic-auth"}`, []string{`FieldValueRequired data[password]: Required value`, `FieldValueRequired data[username]: Required value`}},
		"password":            {"secrets", `{"type":"kubernetes.io/basic-auth","stringData":{"password":""}}`, nil},
		"ssh":                 {"secrets", `{"type":"kubernetes.io/ssh-auth","stringData":{"ssh-privatekey":""}}`, []string{`FieldValueRequired data[ssh-privatekey]: Required value`}},
		"token":               {"secrets", `{"type":"kubernetes.io/service-account-token"}`, []string{`FieldValueRequired metadata.annotations[kubernetes.io/service-account.name]: Required value`}},
		"own type":            {"secrets", `{"type":"example.com/x"}`, nil},
		"lease":               {"leases", `{"spec":{"leaseDurationSeconds":0,"leaseTransitions":-1}}`, []string{`FieldValueInvalid spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0`, `FieldValueInvalid spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0`}},
		"binding":             {"bindings", `{"target":{"kind":"Pod"}}`, []string{`FieldValueNotSupported target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>"`, `FieldValueRequired target.name: Required value`}},
		"event elsewhere":     {"events", `{"metadata":{"namespace":"a"},"involvedObject":{"namespace":"b"}}`, []string{`FieldValueInvalid involvedObject.namespace: Invalid value: "b": does not match event.namespace`}},
		"event of no one":     {"events", `{"metadata":{"namespace":"default"},"eventTime":"2020-01-02T03:04:05.000000Z","reportingComponent":"a.b/c"}`, []string{`FieldValueRequired action: Required value`, `FieldValueRequired reason: Required value`, `FieldValueRequired reportingInstance: Required value`}},
		"event of the system": {"events", `{"metadata":{"namespace":"default"},"involvedObject":{"kind":"Node","name":"n"}}`, nil},
		"pod template":        {"podtemplates", `{"template":{"spec":{}}}`, []string{`FieldValueRequired template.spec.containers: Required value`}},
	} {
		t.Run(name, func(t *testing.T) {
			k := coreKindOf(t, tc.resource)
			if d := cmp.Diff(tc.want, coreCauses(coreCreateErrors(k, coreCreated(t, k, tc.doc)))); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestCoreUpdates(t *testing.T) {
	for name, tc := range map[string]struct {
		resource, old, now string
		want               []string
	}{
		"frozen data":      {"configmaps", `{"immutable":true,"data":{"k":"1"}}`, `{"immutable":true,"data":{"k":"2"}}`, []string{"FieldValueForbidden data: Forbidden: field is immutable when `immutable` is set"}},
		"thawed":           {"configmaps", `{"immutable":true,"data":{"k":"1"}}`, `{"data":{"k":"1"}}`, []string{"FieldValueForbidden immutable: Forbidden: field is immutable when `immutable` is set"}},
		"frozen labels":    {"configmaps", `{"immutable":true,"data":{}}`, `{"metadata":{"labels":{"a":"b"}},"immutable":true}`, nil},
		"frozen secret":    {"secrets", `{"immutable":true,"data":{"a":"YQ=="}}`, `{"immutable":true,"stringData":{"a":"b"}}`, []string{"FieldValueForbidden data: Forbidden: field is immutable when `immutable` is set"}},
		"the same secret":  {"secrets", `{"immutable":true,"data":{"a":"YQ=="}}`, `{"immutable":true,"stringData":{"a":"a"}}`, nil},
		"type":             {"secrets", `{"type":"a"}`, `{"type":"b"}`, []string{`FieldValueInvalid type: Invalid value: "b": field is immutable`}},
		"range":            {"nodes", `{"spec":{"podCIDR":"10.0.0.0/24"}}`, `{"spec":{"podCIDR":"10.0.1.0/24"}}`, []string{`FieldValueForbidden spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid`}},
		"first range":      {"nodes", `{}`, `{"spec":{"podCIDR":"10.0.1.0/24"}}`, nil},
		"provider":         {"nodes", `{"spec":{"providerID":"a"}}`, `{"spec":{"providerID":"b"}}`, []string{`FieldValueForbidden spec.providerID: Forbidden: node updates may not change providerID except from "" to valid`}},
		"finalizers stay":  {"namespaces", `{"spec":{"finalizers":["kubernetes"]}}`, `{"spec":{"finalizers":["x"]}}`, nil},
		"unschedulable":    {"nodes", `{}`, `{"spec":{"unschedulable":true}}`, nil},
		"event, old style": {"events", `{"reason":"a"}`, `{"reason":"b"}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			k := coreKindOf(t, tc.resource)
			old, now := coreObject(t, k, tc.old), coreObject(t, k, tc.now)
			if k.PrepareUpdate != nil {
				k.PrepareUpdate(now, old)
			}
			if d := cmp.Diff(tc.want, coreCauses(coreUpdateErrors(k, now, old))); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestNamespacePhaseFollowsDeletion(t *testing.T) {
	k := coreKindOf(t, "namespaces")
	for name, tc := range map[string]struct {
		doc  string
		want []string
	}{
		"in use":       {`{"status":{"phase":"Active"}}`, nil},
		"too early":    {`{"status":{"phase":"Terminating"}}`, []string{"FieldValueInvalid status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty"}},
		"going away":   {`{"metadata":{"deletionTimestamp":"2020-01-02T03:04:05Z"},"status":{"phase":"Terminating"}}`, nil},
		"not any more": {`{"metadata":{"deletionTimestamp":"2020-01-02T03:04:05Z"},"status":{"phase":"Active"}}`, []string{"FieldValueInvalid status.Phase: Invalid value: \"Active\": may only be 'Terminating' if `deletionTimestamp` is not empty"}},
	} {
		t.Run(name, func(t *testing.T) {
			obj := coreObject(t, k, tc.doc)
			if d := cmp.Diff(tc.want, coreCauses(k.ValidateStatus(obj, obj))); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestNamespaceFinalize(t *testing.T) {
	k := coreKindOf(t, "namespaces")
	s := coreSubresource(t, k, "finalize")
	old := coreObject(t, k, `{"metadata":{"name":"n"},"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Terminating"}}`)
	now := coreObject(t, k, `{"metadata":{"name":"n"},"spec":{"finalizers":["x"]}}`)
	s.Prepare(now, old)
	if phase := now.(*corev1.Namespace).Status.Phase; phase != corev1.NamespaceTerminating {
		t.Errorf("phase %s", phase)
	}
	want := []string{`FieldValueInvalid spec.finalizers[0]: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified`}
	if d := cmp.Diff(want, coreCauses(s.Validate(now, old))); d != "" {
		t.Error(d)
	}
}

func TestCoreCells(t *testing.T) {
	created := `"creationTimestamp":"` + coreAgo(5*time.Minute) + `"`
	for name, tc := range map[string]struct{ resource, doc, want string }{
		"config map": {"configmaps", `{"metadata":{"name":"a",` + created + `},"data":{"k":""},"binaryData":{"l":""}}`, "a 2 5m"},
		"secret":     {"secrets", `{"metadata":{"name":"a"},"stringData":{"k":""}}`, "a Opaque 1 <unknown>"},
		"account":    {"serviceaccounts", `{"metadata":{"name":"a",` + created + `}}`, "a 5m"},
		"namespace":  {"namespaces", `{"metadata":{"name":"a",` + created + `}}`, "a Active 5m"},
		"lease":      {"leases", `{"metadata":{"name":"a",` + created + `},"spec":{"holderIdentity":"h"}}`, "a h 5m"},
		"node": {"nodes", `{"metadata":{"name":"a",` + created + `,"labels":{"node-role.kubernetes.io/worker":"","kubernetes.io/role":"x"}},"spec":{"unschedulable":true},` +
			`"status":{"conditions":[{"type":"Ready","status":"True"}],"addresses":[{"type":"InternalIP","address":"10.0.0.1"}],"nodeInfo":{"kubeletVersion":"v1","kernelVersion":"6","architecture":"amd64"}}}`,
			"a Ready,SchedulingDisabled worker,x 5m v1 10.0.0.1 <none> <unknown> 6 (amd64) <unknown>"},
		"new node":     {"nodes", `{"metadata":{"name":"a"}}`, "a Unknown <none> <unknown>  <none> <none> <unknown> <unknown> <unknown>"},
		"pod template": {"podtemplates", `{"metadata":{"name":"a"},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"},{"name":"d","image":"j"}]}}}`, "a c,d i,j a=b"},
		"event":        {"events", `{"metadata":{"name":"e"},"type":"Normal","reason":"R","message":" m ","involvedObject":{"kind":"Pod","name":"p","fieldPath":"f"},"source":{"component":"c","host":"h"},"firstTimestamp":"` + coreAgo(time.Hour) + `","lastTimestamp":"` + coreAgo(time.Minute) + `","count":3}`, "60s Normal R pod/p f c, h m 60m 3 e"},
		"new event":    {"events", `{"metadata":{"name":"e"},"eventTime":"` + coreNow.Add(-time.Minute).Format("2006-01-02T15:04:05.000000Z07:00") + `","involvedObject":{"kind":"Node"},"reportingComponent":"c","series":{"count":4,"lastObservedTime":"` + coreNow.Add(-2*time.Second).Format("2006-01-02T15:04:05.000000Z07:00") + `"}}`, "2s   node  c  60s 4 e"},
	} {
		t.Run(name, func(t *testing.T) {
			k := coreKindOf(t, tc.resource)
			var row []string
			for _, c := range k.Cells(coreObject(t, k, tc.doc), coreNow) {
				row = append(row, fmt.Sprint(c))
			}
			if got := strings.Join(row, " "); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

func TestEventsInBothGroups(t *testing.T) {
	v := coreKindOf(t, "events").Also[0]
	for name, doc := range map[string]string{
		"empty": `{}`,
		"full": `{"kind":"Event","apiVersion":"events.k8s.io/v1","metadata":{"name":"e"},"eventTime":"2020-01-02T03:04:05.678901Z","series":{"count":2,"lastObservedTime":"2020-01-02T03:04:06.000000Z"},
			"reportingController":"c","reportingInstance":"i","action":"a","reason":"r","regarding":{"kind":"Pod"},"related":{"kind":"Node"},"note":"n","type":"Normal",
			"deprecatedSource":{"component":"s"},"deprecatedFirstTimestamp":"2020-01-02T03:04:05Z","deprecatedLastTimestamp":"2020-01-02T03:04:05Z","deprecatedCount":1}`,
	} {
		t.Run(name, func(t *testing.T) {
			e := v.New()
			if err := json.Unmarshal([]byte(doc), e); err != nil {
				t.Fatal(err)
			}
			stored, err := v.ToStored(e)
			if err != nil {
				t.Fatal(err)
			}
			if kind := stored.GetObjectKind().GroupVersionKind(); kind.Group != "" || (kind.Kind == "") != (name == "empty") {
				t.Errorf("stored as %v", kind)
			}
			back, err := v.FromStored(stored)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(e, back); d != "" {
				t.Error(d)
			}
		})
	}
	if _, err := v.ToStored(&corev1.Event{}); err == nil {
		t.Error("took an event of the other group")
	}
	if _, err := v.FromStored(&eventsv1.Event{}); err == nil {
		t.Error("took an event of the other group")
	}
}

func TestNewEventsAreCheckedMore(t *testing.T) {
	v := coreKindOf(t, "events").Also[0]
	good := `"metadata":{"namespace":"n"},"eventTime":"2020-01-02T03:04:05.678901Z","reportingController":"a.b/c","reportingInstance":"i","action":"a","reason":"r","regarding":{"kind":"Pod","namespace":"n"},"type":"Normal"`
	for name, tc := range map[string]struct {
		old, now string
		want     []string
	}{
		"good":        {"", `{` + good + `}`, nil},
		"old style":   {"", `{"metadata":{"namespace":"n"},"regarding":{"namespace":"n"},"deprecatedCount":1}`, []string{"FieldValueInvalid count: Invalid value: \"\": needs to be unset", "FieldValueInvalid type: Invalid value: \"\": has invalid value: ", "FieldValueRequired eventTime: Required value"}},
		"no reporter": {"", `{` + strings.Replace(good, "a.b/c", "", 1) + `}`, []string{`FieldValueInvalid reportingController: Invalid value: "": name part must be non-empty`, `FieldValueInvalid reportingController: Invalid value: "": name part must consist of`, `FieldValueRequired reportingController: Required value`}},
		"once more":   {`{` + good + `}`, `{` + good + `,"series":{"count":2,"lastObservedTime":"2020-01-02T03:04:06.000000Z"}}`, nil},
		"series of 1": {`{` + good + `}`, `{` + good + `,"series":{"count":1}}`, []string{`FieldValueInvalid series.count: Invalid value: "": should be at least 2`, `FieldValueRequired series.lastObservedTime: Required value`}},
		"other note":  {`{` + good + `}`, `{` + good + `,"note":"x"}`, []string{`FieldValueInvalid message: Invalid value: "x": field is immutable`}},
	} {
		t.Run(name, func(t *testing.T) {
			decode := func(doc string) *corev1.Event {
				e := &eventsv1.Event{}
				if err := json.Unmarshal([]byte(doc), e); err != nil {
					t.Fatal(err)
				}
				return eventToStored(e)
			}
			e := decode(tc.now)
			errs := v.Validate(e)
			if tc.old == "" {
				errs = append(errs, v.ValidateCreate(e)...)
			} else {
				errs = append(errs, v.ValidateUpdate(e, decode(tc.old))...)
			}
			got := coreCauses(errs)
			if len(got) != len(tc.want) || !slices.EqualFunc(got, tc.want, strings.HasPrefix) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestCoreWarnings(t *testing.T) {
	const enforce = `{"metadata":{"annotations":{"kubernetes.io/enforce-mountable-secrets":"true"}}}`
	for name, tc := range map[string]struct {
		resource, doc, old string
		want               []string
	}{
		"tls":       {"secrets", `{"type":"kubernetes.io/tls"}`, "", []string{"tls: failed to find any PEM data in certificate input"}},
		"mountable": {"serviceaccounts", enforce, "", []string{"metadata.annotations[kubernetes.io/enforce-mountable-secrets]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"}},
		"as before": {"serviceaccounts", enforce, enforce, nil},
		"external":  {"nodes", `{"spec":{"externalID":"x"}}`, "", []string{"spec.externalID: this field is deprecated, and is unused by Kubernetes"}},
	} {
		t.Run(name, func(t *testing.T) {
			k := coreKindOf(t, tc.resource)
			obj := coreObject(t, k, tc.doc)
			var got []string
			if tc.old == "" {
				got = k.Warnings(obj, nil)
			} else {
				got = k.Warnings(obj, coreObject(t, k, tc.old))
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}
