// SPDX-License-Identifier: Apache-2.0

// Package apiserver is a Kubernetes API server in memory: the part of one that a controller
// such as Weir talks to, in Kubernetes' own HTTP. What ships runs against it unchanged, in
// virtual time. It never ships itself.
//
// # Use
//
//	s := apiserver.New(apiserver.Options{Seed: 1})
//	err := s.Install(definition)        // a custom resource, from config/crd
//	cfg := s.RESTConfig("weir")         // client-go, controller-runtime; no sockets
//	o, err := s.Put(service)            // an object that is simply there, with its status
//	end := s.Inject(apiserver.Fault{Client: "weir", Verb: "watch", Late: time.Minute})
//	s.BreakWatches("weir", "services")  // the connection is lost
//	s.ExpireWatches("weir", "services") // 410: who watches lists again
//	s.Log()                             // who asked for what, and what was answered
//
// # Time and concurrency
//
// A Server is safe for concurrent use. It starts no goroutine: a request is answered in the
// caller's, and a watch waits in the goroutine that reads it. Only the collector waits for
// itself, on timers that Close stops. Time is time.Now, so inside a testing/synctest bubble it is
// virtual; the one mutex is never held while time passes.
//
// # What it does
//
//   - Discovery, group by group; whoever asks for all groups at once gets the old answer.
//   - get, list, watch, create, update, patch (JSON, merge, strategic merge, server-side apply) and
//     delete of Services, Nodes, Namespaces, ConfigMaps, Events, EndpointSlices, Leases, and custom
//     resources; status of those that have one. JSON, Protobuf, and metadata alone.
//   - One counter of resource versions; optimistic locking; writes that change nothing store
//     nothing. UIDs, generations, generated names, finalizers, preconditions, dry runs.
//   - Ownership of fields and server-side apply are apimachinery's own.
//   - A watch starts at a version, at the objects there are, or as a stream that begins with
//     them (sendInitialEvents); it has bookmarks, a time limit, and is refused as expired when
//     what it asks for is forgotten. Selectors by label and field, for lists and watches.
//   - Services: defaults, cluster IPs, node ports, what a change of type takes away, and what
//     cannot change. Custom resources: pruning, defaults, validation by their schema, and the
//     rules of config/crd, which are written down in Go: no other can be installed.
//   - A collector deletes what has lost its owners, and what is in a namespace that is deleted.
//
// It knows no authorization, no admission but what is said here, no limit of lists, and no
// version of a kind but one. A test compares it with kube-apiserver, request by request; what
// is left to differ stands there and in docs/reference/apiserver.md.
package apiserver
