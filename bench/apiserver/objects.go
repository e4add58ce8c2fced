//go:build linux

package main

import (
	"bytes"
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// kind is a kind of objects that are made for load.
type kind struct {
	name     string
	resource string
	// prefix is where the kind's version is; "" is /api/v1.
	prefix string
	// body is an object's JSON; version may be "", mark is what updates change.
	body func(name, version, mark string) string
}

// padding fills objects up to the size wanted.
func padding(n int) string {
	return strings.Repeat("evenkeel-benchmark-padding-", n/27+1)[:n]
}

func metadata(name, version, mark string) string {
	if version != "" {
		version = `,"resourceVersion":"` + version + `"`
	}
	return `"metadata":{"name":"` + name + `"` + version + `,"labels":{"app":"bench"},"annotations":{"bench/mark":"` + mark + `"}}`
}

// configMap is of about 1 kB as it is sent, with n bytes of data.
func configMap(n int) kind {
	data := padding(n)
	return kind{name: "ConfigMap", resource: "configmaps", body: func(name, version, mark string) string {
		return `{"apiVersion":"v1","kind":"ConfigMap",` + metadata(name, version, mark) + `,"data":{"key":"` + data + `"}}`
	}}
}

// pod has one container, and n bytes in an environment variable.
func pod(n int) kind {
	env := ""
	if n > 0 {
		env = `,"env":[{"name":"PADDING","value":"` + padding(n) + `"}],"ports":[{"containerPort":8080,"name":"http"}],` +
			`"resources":{"requests":{"cpu":"100m","memory":"64Mi"},"limits":{"memory":"128Mi"}}`
	}
	return kind{name: "Pod", resource: "pods", body: func(name, version, mark string) string {
		return `{"apiVersion":"v1","kind":"Pod",` + metadata(name, version, mark) +
			`,"spec":{"containers":[{"name":"main","image":"registry.example/app:1.2.3"` + env + `}]}}`
	}}
}

const (
	http1 = "http/1.1"
	http2 = "h2"

	jsonType  = "application/json"
	protoType = "application/vnd.kubernetes.protobuf"
)

// appendRequest makes the bytes of a request.
func appendRequest(dst []byte, method, path, accept, body string) []byte {
	dst = append(dst, method+" "+path+" HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench\r\nAccept: "...)
	dst = append(dst, accept...)
	if body != "" {
		dst = append(dst, "\r\nContent-Type: application/json\r\nContent-Length: "...)
		dst = strconv.AppendInt(dst, int64(len(body)), 10)
	}
	dst = append(dst, "\r\n\r\n"...)
	return append(dst, body...)
}

func (k kind) collection(namespace string) string {
	return cmp.Or(k.prefix, "/api/v1") + "/namespaces/" + namespace + "/" + k.resource
}

// objectName is of the same length for all numbers.
func objectName(number int) string { return fmt.Sprintf("object-%08d", number) }

// creation is a request that makes an object, whose number can be changed in place.
type creation struct {
	bytes []byte
	at    int // of the digits
}

func (k kind) creation(namespace string) creation {
	name := objectName(0)
	request := appendRequest(nil, "POST", k.collection(namespace), jsonType, k.body(name, "", mark(0)))
	return creation{bytes: request, at: bytes.Index(request, []byte(name)) + len(name) - 8}
}

// clone is a copy for another goroutine.
func (c creation) clone() creation { return creation{bytes: bytes.Clone(c.bytes), at: c.at} }

// number sets which object is made.
func (c creation) number(n int) []byte {
	for i := c.at + 7; i >= c.at; i-- {
		c.bytes[i] = byte('0' + n%10)
		n /= 10
	}
	return c.bytes
}

// mark is the n-th value of what updates change.
func mark(n int) string { return fmt.Sprintf("%010d", n) }

func (k kind) get(namespace string, number int) []byte {
	return appendRequest(nil, "GET", k.collection(namespace)+"/"+objectName(number), jsonType, "")
}

func (k kind) put(dst []byte, namespace string, number int, version, mark string) []byte {
	name := objectName(number)
	return appendRequest(dst, "PUT", k.collection(namespace)+"/"+name, jsonType, k.body(name, version, mark))
}

// apply is a request to apply an object, for a manager of its own.
func (k kind) apply(dst []byte, namespace string, number int, mark string) []byte {
	name := objectName(number)
	body := k.body(name, "", mark)
	dst = append(dst, "PATCH "+k.collection(namespace)+"/"+name+"?fieldManager=bench&force=true HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench\r\n"...)
	dst = append(dst, "Accept: application/json\r\nContent-Type: application/apply-patch+yaml\r\nContent-Length: "...)
	dst = strconv.AppendInt(dst, int64(len(body)), 10)
	dst = append(dst, "\r\n\r\n"...)
	return append(dst, body...)
}

func namespace(name string) []byte {
	return appendRequest(nil, "POST", "/api/v1/namespaces", jsonType, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"`+name+`"}}`)
}

var versionKey = []byte(`"resourceVersion":"`)

// versionIn finds the resource version of an object or a list; "" if there is none.
func versionIn(body []byte) string {
	_, after, _ := bytes.Cut(body, versionKey)
	version, _, found := bytes.Cut(after, []byte{'"'})
	if !found {
		return ""
	}
	return string(version)
}
