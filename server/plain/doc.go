// Package plain reads JSON into API types, fast, when there is nothing remarkable
// about it.
//
// Nearly all objects that a server reads are plain: fields that their types have,
// each once and spelled as it should be, with values of the right kind. These are
// read in one pass, a third to a tenth of what encoding/json and the strict decoder
// of Kubernetes take. Of all else [Decode] says only that it is not plain, and the
// caller has the real decoder find out what is wrong with it, and say so in its
// words. What Decode accepts it reads exactly as they do; the tests hold it to that.
package plain
