// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/service"
)

// While its namespace's writes are deferred, an edited Service sends no request, has one event and the
// condition Deferred, and retries afterwards.
func TestADeferredServiceAsksNothing(t *testing.T) {
	inTime(t, func(t *testing.T) {
		w := served(t)
		until, reads := time.Now().Add(time.Minute), 0
		w.defers = func(string, *service.Spec, bool, time.Time) error {
			if reads++; !time.Now().Before(until) {
				return nil
			}
			return armerror.NewDeferred(until, errors.New("namespace shop used its share"))
		}
		for n := range 30 {
			w.s.Object.Ports[0].Port = int32(81 + n)
			if requeueAfter := w.looks(); requeueAfter != time.Until(until) {
				t.Errorf("it comes back after %s, want %s", requeueAfter, time.Until(until))
			}
			w.counts(ConditionDeferred)
			time.Sleep(time.Second)
		}
		w.is("LoadBalancerDeferred: namespace shop used its share")
		if v := w.verdicts[TypeProgrammed]; v.Reason != ConditionReasonDeferred || v.Text != "namespace shop used its share" {
			t.Errorf("%+v", v)
		}
		time.Sleep(time.Until(until))
		w.looks()
		w.is("EnsuringLoadBalancer: Ensuring load balancer", "asked all for kubernetes")
		w.answers = []error{armerror.NewDeferred(time.Now().Add(5*time.Second), errors.New("no room"))} // another Service used the budget
		w.ends()
		if requeueAfter := w.looks(); requeueAfter != 5*time.Second {
			t.Errorf("it comes back after %s", requeueAfter)
		}
		w.is("LoadBalancerDeferred: no room")
		time.Sleep(5 * time.Second)
		w.looks()
		w.ends()
		w.looks()
		w.counts(ConditionReady)
	})
}

// A rejected spec stays Failed with its error while it waits; another spec that waits is Deferred.
func TestARejectedServiceStaysFailed(t *testing.T) {
	inTime(t, func(t *testing.T) {
		w := served(t)
		w.s.Object.Ports[0].Port = 81
		w.looks()
		w.answers = []error{&armerror.Fault{Class: armerror.Terminal, Err: errors.New("rejected")}}
		w.ends()
		w.looks()
		w.defers = func(string, *service.Spec, bool, time.Time) error {
			return armerror.NewDeferred(time.Now().Add(time.Minute), errors.New("it was rejected"))
		}
		w.log = nil
		w.looks()
		w.is()
		w.counts(ConditionFailed)
		w.s.Object.Ports[0].Port = 82
		w.looks()
		w.is("LoadBalancerDeferred: it was rejected")
		w.counts(ConditionDeferred)
	})
}

// Leaving Services and narrower access are marked in the request, so they are not deferred.
func TestARestrictionIsKnown(t *testing.T) {
	inTime(t, func(t *testing.T) {
		w := served(t)
		var narrow, leaves []bool
		w.defers = func(_ string, desired *service.Spec, narrows bool, _ time.Time) error {
			narrow, leaves = append(narrow, narrows), append(leaves, desired == nil)
			return nil
		}
		step := func(edit func(), narrows, leave bool) {
			t.Helper()
			edit()
			w.looks()
			if w.asked == nil || len(narrow) != 1 || narrow[0] != narrows || leaves[0] != leave || w.asked.OnlyRestricts != narrows {
				t.Fatalf("narrows %v, leaves %v, asked %v", narrow, leaves, w.asked)
			}
			narrow, leaves = nil, nil
			w.ends()
			w.looks()
		}
		ranges := func(names ...string) func() {
			return func() { w.s.Object.SourceRanges = names }
		}
		step(ranges("10.0.0.0/8", "198.51.100.0/24"), true, false) // all clients might have been admitted before
		step(ranges("10.1.0.0/16"), true, false)
		step(ranges("10.2.0.0/16"), false, false)
		step(func() { w.s.Object.SourceRanges, w.s.Object.Ports[0].Port = nil, 81 }, false, false)
		step(func() { w.s.Object.Ports[0].Port = 82; ranges("10.2.0.0/16")() }, false, false)
		step(func() { w.s.Deleting = true }, false, true)
	})
}

// Which restrictions admit no additional client.
func TestNarrows(t *testing.T) {
	prefixes := func(names ...string) (of []netip.Prefix) {
		for _, p := range names {
			of = append(of, netip.MustParsePrefix(p))
		}
		return of
	}
	wide, narrow := service.Access{Ranges: prefixes("10.0.0.0/8"), Tags: []string{"A", "B"}}, service.Access{Ranges: prefixes("10.1.0.0/16", "10.2.0.0/16"), Tags: []string{"B"}}
	further := []netip.Addr{netip.MustParseAddr("198.51.100.1")}
	for about, tt := range map[string]struct {
		before, current service.Access
		internal        bool
		want            bool
	}{
		"fewer":                         {wide, narrow, false, true},
		"more":                          {narrow, wide, false, false},
		"the same":                      {narrow, narrow, true, true},
		"all clients, and then some":    {service.Access{}, narrow, false, true},
		"the network, and then some":    {service.Access{}, narrow, true, false},
		"some, and then all clients":    {narrow, service.Access{}, false, false},
		"no rules before":               {service.Access{NoSecurityRules: true}, narrow, false, false},
		"no rules any more":             {narrow, service.Access{NoSecurityRules: true}, false, false},
		"alone now":                     {wide, service.Access{Ranges: narrow.Ranges, DenyOthers: true}, false, true},
		"not alone any more":            {service.Access{Ranges: wide.Ranges, DenyOthers: true}, service.Access{Ranges: narrow.Ranges}, false, false},
		"another tag":                   {wide, service.Access{Tags: []string{"C"}}, false, false},
		"further addresses":             {wide, service.Access{Ranges: narrow.Ranges, Additional: further}, false, false},
		"fewer further addresses":       {service.Access{Ranges: wide.Ranges, Additional: further}, narrow, false, false},
		"fewer further addresses, same": {service.Access{Ranges: wide.Ranges, Tags: wide.Tags, Additional: further}, narrow, false, true},
	} {
		current, before := service.Spec{Internal: tt.internal, Access: tt.current}, service.Spec{Internal: tt.internal, Access: tt.before}
		if got := current.IsNarrower(&before); got != tt.want {
			t.Errorf("%s: %t", about, got)
		}
		if current.Owner = "another"; current.IsNarrower(&before) {
			t.Errorf("%s, and something else changes: it narrows", about)
		}
	}
}

// A failed read of a group that the Service names counts as its rejection; a failed read for all Services does
// not.
func TestReadsForAllServicesAreNoRejection(t *testing.T) {
	inTime(t, func(t *testing.T) {
		w := newPublished(t)
		w.s.Object.Annotations[service.PLSResourceGroup] = "elsewhere"
		w.declines = errors.New("400 InvalidRequestFormat")
		if w.looks(); w.rejected != 0 {
			t.Errorf("%d rejections after a failed list of load balancers", w.rejected)
		}
		w.declines, w.unreadable = nil, errors.New("400 InvalidResourceGroup")
		time.Sleep(time.Hour)
		if w.looks(); w.rejected != 1 {
			t.Errorf("%d rejections after a failed read of its resource group: %v", w.rejected, w.log)
		}
	})
}
