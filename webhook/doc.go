// Package webhook serves the webhooks of an operator: admission, which defaults and
// judges objects before they are stored, and conversion of custom resources.
//
//	hooks := webhook.New(mgr, webhook.Options{Name: "boats.example.com"},
//		webhook.Mutate(func(ctx context.Context, r *webhook.Request[*v1.Boat]) error {
//			r.Object.Spec.Oars = cmp.Or(r.Object.Spec.Oars, 2)
//			return nil
//		}),
//		webhook.Validate(checkBoat),
//		webhook.Convert(webhook.Version(fromAlpha, toAlpha)),
//	)
//	hooks.AddTo(mgr)
//
// # Answers
//
// A function that returns an error refuses the request. The error's text is what the
// user sees; an error of the API passes its code and reason through, and
// [Request.Invalid] makes one of field errors. [Undecided] leaves the answer to the
// failure policy, and so does a panic.
//
// What [Mutate] changed becomes a JSON patch of the object as it was sent. Fields that
// the Go type does not know stay as they are, and so does what was not changed.
//
// # Certificates and registration
//
// Unless [Options].CertFile says otherwise, the server makes its own certificates. It
// writes the webhook configurations, and the conversion of the custom resource
// definitions, with the CA that API servers are to trust, and writes them again when
// that changes. On a developer's machine, API servers are told a URL on loopback; in a
// cluster, [Options].Service and [Options].Secret are needed.
package webhook
