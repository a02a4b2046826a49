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
// # Faults
//
// Inject adds a fault for a client's requests, by verb, resource, namespace and name, for a number of
// times or until it is ended. LoseAnswer carries the request out and breaks the connection; Hang sends
// no response and does nothing; Away allows no connection; Late and Events delay watch events, in order.
//
// # Differences from kube-apiserver
//
// Each response in testdata/answers was recorded from kube-apiserver 1.37: TestAnswersAsTheRealOneDid
// compares this package with the recordings, TestRecordedAnswersAreKubeAPIServers compares
// kube-apiserver with them (-rewrite records again). UIDs, versions, times, addresses, ports and
// message texts may differ. For new behavior, add requests to scenarios_test.go and record them.
//
//   - No authentication, authorization, quota, priority; no other admission.
//   - Lists are complete: limit is ignored. A future version is rejected immediately.
//   - Foreground deletion and orphaning behave like background deletion. deletecollection, scale and
//     aggregated discovery are not served.
//   - A kind has one version; events.k8s.io is not served. Events do not expire.
//   - An unknown field is dropped, regardless of fieldValidation.
//   - No kubernetes Service, kubelet or node controllers.
//   - Addresses of a Service are of one family unless it names two; of two, only the first gets one.
package apiserver
