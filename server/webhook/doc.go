// Package webhook calls webhooks: HTTPS servers of the cluster's users that the
// API server asks to convert or to judge objects.
//
// A [Client] holds the connections. [Client.Hook] checks where a webhook is, and
// [Hook.Post] calls it. A [Converter] asks the webhook of a
// CustomResourceDefinition for objects in another version, and believes nothing
// that it answers about their identity.
//
// What a webhook does wrong never becomes an error of the API's own kinds: a 404
// of the webhook is no missing object. All errors are for an answer of 500, and
// say which webhook failed and how; of what is wrapped only the sentinels of
// this package, context errors and those of the network can be relied on.
package webhook
