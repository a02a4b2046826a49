// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/cockroachdb/datadriven"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// crowd creates many Services together. Poisoned ones look valid, but Azure rejects them.
func (s *stage) crowd(d *datadriven.TestData) {
	count, err := strconv.Atoi(d.CmdArgs[0].Key)
	must(err)
	var poisoned []string
	for _, a := range d.CmdArgs {
		if a.Key == "poisoned" {
			poisoned = a.Vals
		}
	}
	for i := range count {
		spec := simple()
		if d.HasArg("internal") {
			annotate(&spec, service.Internal, "true")
		}
		if d.HasArg("published") {
			annotate(&spec, service.PLSCreate, "true")
			annotate(&spec, service.PLSSubnet, "links")
		}
		if slices.Contains(poisoned, strconv.Itoa(i)) || slices.Contains(poisoned, "all") {
			annotate(&spec, service.IPv4, fmt.Sprintf("10.77.0.%d", 10+i)) // the subnet is 10.0.0.0/16
		}
		s.mu.Lock()
		name := fmt.Sprintf("crowd/s%03d", s.uids)
		s.mu.Unlock()
		s.apply(name, spec, nil)
	}
}

// mend fixes the poisoned Services.
func (s *stage) mend() {
	for _, name := range s.names() {
		s.mu.Lock()
		spec := s.services[name].Service
		s.mu.Unlock()
		if _, ok := spec.Annotations[service.IPv4]; ok {
			fresh := simple()
			annotate(&fresh, service.Internal, "true")
			s.apply(name, fresh, nil)
		}
	}
}

func simple() service.Service {
	return service.Service{
		Families: []lb.Family{lb.IPv4}, Annotations: map[string]string{},
		Ports: []service.Port{{Protocol: "TCP", Port: 80, NodePort: 30080}},
	}
}

func annotate(spec *service.Service, name, value string) { spec.Annotations[name] = value }

// standing reports how many Services are in sync, and which are not.
func (s *stage) standing() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	served, out := 0, ""
	var at time.Duration
	for name, r := range s.services {
		cl := s.process.claims[name]
		if cl != nil && cl.inSync != nil {
			served++
			at = max(at, r.servedAt.Sub(s.start))
			continue
		}
		if cl != nil && len(s.services) < 200 {
			out = max(out, name+": "+firstLine(cl.told))
		}
	}
	text := fmt.Sprintf("%d of %d are served, the last at %.0fs\n", served, len(s.services), at.Seconds())
	if out != "" {
		text += out + "\n"
	}
	return text
}
