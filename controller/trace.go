package controller

import (
	"context"
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// span begins the span of a reconcile, with links to those of the reconciles whose
// writes caused it. The function ends it.
func (b *Base) span(ctx context.Context, r *run) (context.Context, func(Result, error)) {
	if b.tracer == nil {
		return ctx, func(Result, error) {}
	}
	opts := []trace.SpanStartOption{trace.WithNewRoot(), trace.WithAttributes(
		attribute.String("controller", r.of.name), attribute.String("key", r.Key.String()),
		attribute.String("reconcile.id", r.ID), attribute.Int("retries", r.Retries),
	)}
	for _, c := range r.Causes {
		if by, ok := b.writes.find(c.New); ok && by.span.IsValid() {
			opts = append(opts, trace.WithLinks(trace.Link{SpanContext: by.span, Attributes: []attribute.KeyValue{attribute.String("cause", c.String())}}))
		}
	}
	ctx, span := b.tracer.Start(ctx, "reconcile "+r.of.name, opts...)
	for _, c := range r.Causes {
		span.AddEvent("cause", trace.WithAttributes(attribute.String("cause", c.String())))
	}
	return ctx, func(result Result, err error) {
		span.SetAttributes(attribute.String("result", result.String()))
		if err != nil {
			span.RecordError(err)
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
}

// traced has a span for each request, and tells the server of it.
func (b *Base) traced(next http.RoundTripper) http.RoundTripper {
	return &tracing{next: next, tracer: b.tracer}
}

type tracing struct {
	next   http.RoundTripper
	tracer trace.Tracer
}

func (t *tracing) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, span := t.tracer.Start(r.Context(), strings.ToUpper(r.Method)+" "+r.URL.Path, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("http.request.method", r.Method), attribute.String("url.full", r.URL.String()),
	))
	defer span.End()
	r = r.Clone(ctx)
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(r.Header))
	resp, err := t.next.RoundTrip(r)
	switch {
	case err != nil:
		span.RecordError(err)
		span.SetStatus(codes.Error, err.Error())
	default:
		span.SetAttributes(attribute.Int("http.response.status_code", resp.StatusCode))
		if resp.StatusCode >= http.StatusBadRequest {
			span.SetStatus(codes.Error, resp.Status)
		}
	}
	return resp, err
}

// WrappedRoundTripper is for those who look for the transport below.
func (t *tracing) WrappedRoundTripper() http.RoundTripper { return t.next }
