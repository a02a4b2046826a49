// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"weir.dev/weir/lab/apiserver"
)

// addAzureFault injects a temporary Azure fault. It replaces the previous one.
func (b *scheduleBuilder) addAzureFault() {
	path := pickOne(b, "**", "loadBalancers/*", "publicIPAddresses/*", "networkSecurityGroups/*", "backendAddressPools/*")
	kind := pickOne(b, "put", "put", "get", "delete", "poll", "list")
	times := 1 + b.IntN(4)
	seconds := pickOne(b, 1, 7, 40)
	action := pickOne(b,
		fmt.Sprintf("{status: 429, code: TooManyRequests, message: busy, headers: {Retry-After: %q}}", fmt.Sprint(seconds)),
		fmt.Sprintf("{status: 503, code: ServiceUnavailable, message: busy, headers: {Retry-After: %q}}", fmt.Sprint(seconds)),
		"{status: 500, code: InternalServerError, message: broken}",
		"{status: 409, code: AnotherOperationInProgress, message: another}",
		"{drop: true}",
		"{drop: true, applied: true}",
		"{delay: 9s}",
		"{bumpEtag: true}",
		"{status: 403, code: AuthorizationFailed, message: not allowed}",
	)
	if kind == "put" && b.IntN(3) == 0 {
		action = "{operation: {fail: {code: InternalServerError, message: broken}}}"
	}
	text := fmt.Sprintf("{name: fault, match: {path: %q, kind: %s, maxMatches: %d}, action: %s}", path, kind, times, action)
	b.addStep(func(s *Stage) error { return s.AzureFaults(text) }, "Azure: %s", text)
}

// addAPIFault injects an API server fault.
func (b *scheduleBuilder) addAPIFault() {
	resource := pickOne(b, "", "services", "services/status", "backendpools", "backendpools/status", "endpointslices", "nodes", "configmaps")
	verb := pickOne(b, "", "apply", "patch", "update", "create", "delete", "get", "list")
	replica := b.IntN(2)
	switch b.IntN(7) {
	case 0:
		b.addStep(func(s *Stage) error { s.BreakWatches(""); return nil }, "all watches break")
	case 1:
		b.addStep(func(s *Stage) error { s.ExpireWatches(""); return nil }, "all watches expire")
	case 2:
		late := pickOne(b, 300*time.Millisecond, 3*time.Second, 20*time.Second)
		events := pickOne(b, nil, []watch.EventType{watch.Deleted}, []watch.EventType{watch.Modified})
		kind := pickOne(b, "services", "backendpools", "endpointslices", "nodes")
		b.addStep(func(s *Stage) error {
			s.APIFault(replica, apiserver.Fault{Verb: "watch", Resource: kind, EventDelay: late, Events: events})
			return nil
		}, "events %v of %s are %s late for replica %d", events, kind, late, replica)
	case 3:
		f := apiserver.Fault{Resource: resource, Verb: verb, Times: 1 + b.IntN(5), Status: pickOne(b, 409, 429, 500, 503), RetryAfter: time.Duration(b.IntN(3)) * time.Second}
		if f.Verb != "update" && f.Verb != "patch" && f.Verb != "apply" && f.Status == 409 {
			f.Status = 500 // reads never conflict
		}
		b.addStep(func(s *Stage) error { s.APIFault(replica, f); return nil }, "API: %d for %d × %s %s", f.Status, f.Times, verb, resource)
	case 4:
		f := apiserver.Fault{Resource: resource, Verb: pickOne(b, "apply", "patch", "update", "create", "delete"), Times: 1 + b.IntN(3), DropResponse: true}
		b.addStep(func(s *Stage) error { s.APIFault(replica, f); return nil }, "API: %d answers to %s %s are lost", f.Times, f.Verb, resource)
	case 5:
		length := pickOne(b, time.Second, 5*time.Second, 40*time.Second)
		b.addStep(func(s *Stage) error {
			s.APIFault(replica, apiserver.Fault{Unreachable: true})
			s.Sleep(length)
			s.endAPIFaults[len(s.endAPIFaults)-1]()
			return nil
		}, "the API server is away for %s", length)
	default:
		latency := pickOne(b, 50*time.Millisecond, time.Second)
		b.addStep(func(s *Stage) error {
			s.APIFault(replica, apiserver.Fault{Resource: resource, Latency: latency, Times: 40})
			return nil
		}, "API: %s takes %s", resource, latency)
	}
}
