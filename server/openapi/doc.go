// Package openapi makes the OpenAPI documents of the server: the index and one
// document a group-version of /openapi/v3, and the single document of
// /openapi/v2 as JSON and protobuf.
//
// Models come from the Go types of the API: fields and their types by
// reflection, descriptions from the types' own SwaggerDoc methods, and what
// neither shows (optional fields, defaults, list types, enums) from facts.txt,
// which the program factgen reads out of the types' sources. Those of custom
// resources come from the schemas of their definitions; see [FromDefinition].
//
// Nothing is made before it is asked for. A document is kept as bytes once it
// is made, until a resource of its group-version changes.
package openapi

//go:generate go run ./factgen -out facts.txt
