// Package patch changes objects as clients ask: by the three kinds of patch
// ([JSON], [Merge], [Strategic]) and by server-side apply, and keeps account of
// who owns which field ([Fields], with the types of the built-in kinds,
// [Types]). All of it is pure: bytes or objects in, bytes or objects out.
//
// What is refused carries the Status that the real server would answer. Each
// patch is bounded in the work that it makes; see the constants.
//
// docs/adr/0007-patches-and-managed-fields.md has the reasons.
package patch
