// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/service"
)

// history is a Service with random events, and the load balancers that hold parts of it.
type history struct {
	*world
	holds map[string]bool
	uid   int
}

// carriesOut applies a request fully or partly and delivers the result.
func (h *history) carriesOut(err error, half bool) {
	req := *h.asked
	if err == nil || half {
		if req.Desired != nil {
			h.holds[req.On.Name] = true
		}
	}
	if err == nil {
		for _, id := range req.RemoveFrom {
			delete(h.holds, id.Name)
		}
	}
	h.asked = nil
	res := loadbalancer.Result{Request: req, Err: err, Changed: true}
	if req.Desired != nil && err == nil {
		res.Addresses = lost
	}
	h.r.States.AddResult(res)
}

// goes removes the Service once no finalizer is left.
func (h *history) goes() {
	if h.s.Deleting && !h.s.Finalizer {
		h.gone = true
	}
}

// isOnRecord checks that Azure's parts of an existing Service are recorded.
func (h *history) isOnRecord(t *rapid.T) {
	for name := range h.holds {
		if !h.gone && !slices.Contains(h.s.Record.LoadBalancers, name) {
			t.Fatalf("load balancer %s holds parts of it, and on record are %v", name, h.s.Record.LoadBalancers)
		}
	}
}

// happens applies one random event.
func (h *history) happens(t *rapid.T) {
	switch name := rapid.SampledFrom([]string{"look", "look", "end", "end", "fail", "label", "delete", "again", "API", "pool", "dry run", "time", "write again"}).Draw(t, "what"); name {
	case "end", "fail":
		if h.asked == nil {
			return
		}
		var err error
		if name == "fail" {
			err = &armerror.Fault{Class: armerror.Terminal, Code: "InternalServerError", Err: errors.New("not now")}
		}
		h.carriesOut(err, rapid.Bool().Draw(t, "half of it is done"))
	case "label":
		h.s.Object.Labels = map[string]string{"tier": rapid.SampledFrom([]string{"front", "back"}).Draw(t, "tier")}
	case "delete":
		h.s.Deleting, h.s.DryRun = true, false
	case "again":
		if h.gone && h.asked == nil && len(h.holds) == 0 {
			h.comes()
		}
	case "API":
		h.unwritable = nil
		if rapid.Bool().Draw(t, "ill") {
			h.unwritable = errors.New("no API server")
		}
	case "pool":
		h.r.States.AddLostPool("shop/web", LostPool{"kubernetes", "kubernetes"})
	case "dry run":
		h.s.DryRun = !h.s.DryRun && !h.s.Deleting
	case "time":
		h.later += time.Duration(rapid.IntRange(1, 90).Draw(t, "seconds")) * time.Second
	case "write again":
		h.s.RetryToken += "!"
	}
	h.looks()
	h.goes()
}

// comes creates the next Service of the name.
func (h *history) comes() {
	h.uid++
	uid := fmt.Sprintf("%04d-0000", h.uid)
	h.gone, h.s.Deleting, h.s.Finalizer, h.s.StatusAddresses, h.s.Record = false, false, false, nil, Record{}
	h.s.UID, h.s.Object.UID = uid, uid
}

// In any order of events, a Service has one request at a time, its parts in Azure are recorded, and in the end
// it is in sync or gone.
func TestLawServicesConverge(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := &history{world: newWorld(t, func(o *Settings) {
			o.Configurations = []service.Configuration{{Name: "kubernetes"}, {Name: "lb-2", Services: func(on map[string]string) bool { return on["tier"] == "front" }}}
		}), holds: map[string]bool{}}
		h.comes()
		for range rapid.IntRange(1, 40).Draw(rt, "things that happen") {
			h.happens(rt)
			h.isOnRecord(rt)
		}
		h.unwritable, h.s.DryRun = nil, false
		for range 50 {
			h.looks()
			h.goes()
			if h.asked != nil {
				h.carriesOut(nil, false)
			}
			h.isOnRecord(rt)
			h.later += 10 * time.Second
		}
		h.ended(rt)
	})
}

// ended checks the final state.
func (h *history) ended(t *rapid.T) {
	want := "kubernetes"
	if h.s.Object.Labels["tier"] == "front" {
		want = "lb-2"
	}
	_, known := h.r.States.KnownUID("shop/web")
	switch {
	case h.gone && (known || len(h.holds) > 0):
		t.Fatalf("it is gone; known: %t, and %v hold parts of it", known, h.holds)
	case h.gone:
	case h.s.Deleting:
		t.Fatalf("it is being deleted, and stays: %v", h.log)
	case len(h.holds) != 1 || !h.holds[want] || !slices.Equal(h.s.Record.LoadBalancers, []string{want}) || !slices.Equal(h.s.StatusAddresses, lost):
		t.Fatalf("it belongs on %s; %v hold parts of it, recorded are %v, its status shows %v", want, h.holds, h.s.Record.LoadBalancers, h.s.StatusAddresses)
	case h.r.States.CountConditions()[ConditionReady] != 1:
		t.Fatalf("it has what it wants, and is counted as %v", h.r.States.CountConditions())
	}
}
