// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

func smallOptions() Options {
	return Options{Services: 40, Nodes: 100, LoadBalancers: 4, Idle: time.Second, Timeout: time.Minute}
}

func TestValidate(t *testing.T) {
	if err := smallOptions().Validate(); err != nil {
		t.Fatal(err)
	}
	for flag, change := range map[string]func(*Options){
		"--services":       func(o *Options) { o.Services = 0 },
		"--nodes":          func(o *Options) { o.Nodes = 5001 },
		"--load-balancers": func(o *Options) { o.LoadBalancers = 41 },
		"--idle":           func(o *Options) { o.Timeout = o.Idle },
	} {
		o := smallOptions()
		if change(&o); o.Validate() == nil || !strings.Contains(o.Validate().Error(), flag) {
			t.Errorf("%s: %v", flag, o.Validate())
		}
	}
}

type nowhere struct{ client.Client }

func (nowhere) Update(context.Context, client.Object, ...client.UpdateOption) error { return nil }

func (nowhere) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return nil
}

func TestEventsDoWhatTheyAreNamedFor(t *testing.T) {
	c := newLayout(smallOptions())
	c.api = nowhere{}
	before := c.desiredPools()
	if err := c.touchService(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	if now := c.desiredPools(); now[serviceName(3)] != before[serviceName(3)] {
		t.Errorf("touched: %s", now[serviceName(3)])
	}
	if err := c.moveEndpoint(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	now := strings.Fields(c.desiredPools()[serviceName(3)])
	came := 0
	for _, ip := range now {
		if !strings.Contains(" "+before[serviceName(3)]+" ", " "+ip+" ") {
			came++
		}
	}
	if came != 1 || len(now) != endpoints {
		t.Errorf("moved: %d of %d are new", came, len(now))
	}
	if err := c.excludeNode(t.Context(), c.endpointNodes[5][0]); err != nil {
		t.Fatal(err)
	}
	if got := c.desiredPools()[serviceName(5)]; len(strings.Fields(got)) != endpoints || strings.Count(got, downSuffix) != 1 {
		t.Errorf("excluded: %s", got)
	}
}

func TestEachPoolHasItsLoadBalancer(t *testing.T) {
	o, pools := smallOptions(), 0
	for _, r := range seedResources(o)[1:] {
		pools += len(r["body"].(jsonObject)["properties"].(jsonObject)["backendAddressPools"].([]jsonObject))
	}
	if pools != o.Services {
		t.Errorf("%d pools", pools)
	}
	if p := newPool(7, o); p.Spec.LoadBalancer.Name != loadBalancerName(3) || p.Spec.PoolName != serviceName(7) {
		t.Errorf("%+v", p.Spec)
	}
}

func TestTable(t *testing.T) {
	var out bytes.Buffer
	r := run{opts: smallOptions(), results: []phaseResult{
		{Phase: "first start", Seconds: 2, CPU: 1.5, API: 80}, {Phase: "idle", Seconds: 60, CPU: .6, ARMReads: 5},
		{Phase: "event, a member", Events: 100, CPU: .2, Allocs: 700, Bytes: 102400},
	}}
	r.opts.Out = &out
	if err := r.printResults(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"first start: 2.0 API requests a pool\n", "idle: 300 ARM reads an hour, 1.00 % of a core\n", "event, a member: 2.00 ms of CPU, 7 allocations, 1.0 KiB each\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	out.Reset()
	r.opts.JSON = true
	if err := r.printResults(); err != nil || !strings.Contains(out.String(), `"phase": "idle"`) {
		t.Errorf("%v: %s", err, out.String())
	}
}
