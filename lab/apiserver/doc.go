// SPDX-License-Identifier: Apache-2.0

// Package apiserver is an in-memory Kubernetes API server for tests: the parts that a controller
// such as Weir uses, over Kubernetes' own HTTP API, in virtual time.
//
// # Use
//
//	s := apiserver.New(apiserver.Options{Seed: 1})
//	err := s.Install(definition)        // a custom resource, from config/crd
//	cfg := s.RESTConfig("weir")         // client-go, controller-runtime; no sockets
//	o, err := s.Put(service)            // create an object with its status
//	end := s.Inject(apiserver.Fault{Client: "weir", Verb: "list", Status: 503})
//	s.BreakWatches("weir", "services")  // connection reset
//	s.ExpireWatches("weir", "services") // 410: the client lists again
//	s.Log()                             // requests and responses
//
// # Time and concurrency
//
// A Server is safe for concurrent use and starts no goroutine. A watch blocks its reader. Only the
// garbage collector uses timers, which Close stops. Time is time.Now, virtual inside a
// testing/synctest bubble. The mutex is never held while time passes.
//
// # Features
//
//   - get, list, watch, create, update, patch (JSON, merge, strategic merge, server-side apply) and
//     delete of Services, Nodes, Namespaces, ConfigMaps, Events, EndpointSlices, Leases, and custom
//     resources, with status. JSON, Protobuf, and metadata only. Unaggregated discovery.
//   - Resource versions, optimistic locking, finalizers, preconditions, dry runs, field ownership.
//   - Watches with sendInitialEvents, bookmarks, timeouts, and expiry; label and field selectors.
//   - Services: defaults, cluster IPs, node ports, type changes and immutable fields. Custom
//     resources: pruning, defaults, validation, and the rules of config/crd, implemented in Go.
//   - A garbage collector for orphans and for the contents of deleted namespaces.
//
// It has no authorization, no other admission, no list limits, and one version per kind. A test
// compares it with kube-apiserver; docs/reference/apiserver.md lists the differences.
package apiserver
