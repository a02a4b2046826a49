// SPDX-License-Identifier: Apache-2.0

// Package apiserver is an in-memory Kubernetes API server: the part that a controller such as Weir
// uses, over Kubernetes' own HTTP API. The shipped binaries run against it unchanged, in virtual
// time. It is for tests only.
//
// # Use
//
//	s := apiserver.New(apiserver.Options{Seed: 1})
//	err := s.Install(definition)        // a custom resource, from config/crd
//	cfg := s.RESTConfig("weir")         // client-go, controller-runtime; no sockets
//	o, err := s.Put(service)            // create an object with its status
//	end := s.Inject(apiserver.Fault{Client: "weir", Verb: "watch", Late: time.Minute})
//	s.BreakWatches("weir", "services")  // connection reset
//	s.ExpireWatches("weir", "services") // 410: the client lists again
//	s.Log()                             // requests and responses
//
// # Time and concurrency
//
// A Server is safe for concurrent use. It starts no goroutine: a request is served in the caller's,
// and a watch blocks its reader. Only the garbage collector uses timers, which Close stops. Time is
// time.Now, so it is virtual inside a testing/synctest bubble. The mutex is never held while time
// passes.
//
// # Features
//
//   - Discovery by group, not aggregated.
//   - get, list, watch, create, update, patch (JSON, merge, strategic merge, server-side apply) and
//     delete of Services, Nodes, Namespaces, ConfigMaps, Events, EndpointSlices, Leases, and custom
//     resources; status subresources. JSON, Protobuf, and metadata only.
//   - One counter of resource versions; optimistic locking; no-op writes. UIDs, generations,
//     generated names, finalizers, preconditions, dry runs.
//   - Field ownership and server-side apply by apimachinery.
//   - Watches from a version, from the current objects, or with sendInitialEvents; bookmarks,
//     timeouts, and expiry of compacted versions. Label and field selectors.
//   - Services: defaults, cluster IPs, node ports, type changes and immutable fields. Custom
//     resources: pruning, defaults, schema validation, and the rules of config/crd, which are
//     implemented in Go: no other rules can be installed.
//   - A garbage collector for orphans and for the contents of deleted namespaces.
//
// It has no authorization, no other admission, no list limits, and one version per kind. A test
// compares it with kube-apiserver request by request; the differences are listed there and in
// docs/reference/apiserver.md.
package apiserver
