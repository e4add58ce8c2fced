package webhook_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/manager"
	"github.com/even-keel/evenkeel/webhook"
)

// An operator that converts boats: the API server, which stores v1, answers in
// v1beta1 as soon as it has been told of the webhook.
func Example() {
	server, err := evenkeeltest.Open(evenkeeltest.CRDs("testdata/boats.yaml"))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	mgr, err := manager.New(manager.Options{Config: server.Config(), Logger: quiet})
	if err != nil {
		log.Fatal(err)
	}
	hooks := webhook.New(mgr, webhook.Options{Name: "boats.example.com", Logger: quiet}, webhook.Convert(webhook.Version(
		func(from *BetaBoat, to *Boat) error {
			to.Spec.Centimetres = from.Spec.Metres * 100
			return nil
		},
		func(from *Boat, to *BetaBoat) error {
			to.Spec.Metres = from.Spec.Centimetres / 100
			return nil
		},
	)))
	hooks.AddTo(mgr)

	ctx, stop := context.WithCancel(context.Background())
	mgr.Go("sail", func(ctx context.Context) error {
		defer stop()
		return sail(ctx, mgr)
	})
	fmt.Println(mgr.Run(ctx))
	// Output:
	// a boat of 6 m
	// <nil>
}

// sail makes a boat, and waits until it can be read in metres.
func sail(ctx context.Context, source client.Source) error {
	boat := &Boat{Spec: BoatSpec{Centimetres: 600}}
	boat.Namespace, boat.Name = "default", "skiff"
	if _, err := client.Of[*Boat](source).Create(ctx, boat); err != nil {
		return err
	}
	for {
		beta, err := client.Of[*BetaBoat](source).Get(ctx, client.KeyOf(boat))
		if err != nil {
			return err
		}
		if beta.Spec.Metres > 0 {
			fmt.Println("a boat of", beta.Spec.Metres, "m")
			return nil
		}
	}
}

// ask has a hook answer a review, in place of an API server.
func ask(h webhook.Hook, object string) *admissionv1.AdmissionResponse {
	conn, err := client.Connect(&rest.Config{Host: "https://192.0.2.1"})
	if err != nil {
		log.Fatal(err)
	}
	hooks := webhook.New(conn, webhook.Options{Unregistered: true, Logger: quiet}, h)
	body := `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"1","name":"web","operation":"CREATE",` +
		`"kind":{"version":"v1","kind":"Service"},"object":` + object + `}}`
	for _, path := range []string{"/mutate--v1-service", "/validate--v1-service"} {
		w := httptest.NewRecorder()
		hooks.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)))
		var review admissionv1.AdmissionReview
		if w.Code == http.StatusOK && json.Unmarshal(w.Body.Bytes(), &review) == nil {
			return review.Response
		}
	}
	return nil
}

// The object has a field that the Go type does not know, and keeps it.
func ExampleMutate() {
	hook := webhook.Mutate(func(_ context.Context, r *webhook.Request[*corev1.Service]) error {
		for i := range r.Object.Spec.Ports {
			p := &r.Object.Spec.Ports[i]
			p.Name = cmp.Or(p.Name, fmt.Sprintf("port-%d", p.Port))
		}
		return nil
	})
	answer := ask(hook, `{"kind":"Service","apiVersion":"v1","spec":{"ports":[{"port":80,"rate":"1/s"}]}}`)
	fmt.Println(answer.Allowed, string(answer.Patch))
	// Output: true [{"op":"add","path":"/spec/ports/0/name","value":"port-80"}]
}

func ExampleValidate() {
	hook := webhook.Validate(func(_ context.Context, r *webhook.Request[*corev1.Service]) error {
		var errs field.ErrorList
		if r.Object.Spec.Type == corev1.ServiceTypeNodePort {
			errs = append(errs, field.Forbidden(field.NewPath("spec", "type"), "nodes are not for the public"))
		}
		return r.Invalid(errs)
	})
	answer := ask(hook, `{"kind":"Service","apiVersion":"v1","spec":{"type":"NodePort"}}`)
	fmt.Println(answer.Allowed, answer.Result.Code, answer.Result.Message)
	// Output: false 422 Service "web" is invalid: spec.type: Forbidden: nodes are not for the public
}

func ExampleUndecided() {
	hook := webhook.Validate(func(context.Context, *webhook.Request[*corev1.Service]) error {
		return webhook.Undecided(errors.New("the register of services does not answer"))
	})
	fmt.Println("an answer:", ask(hook, `{}`) != nil)
	// Output: an answer: false
}
