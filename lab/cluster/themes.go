// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/config"
)

// themes are what some schedules are about besides: a world of its own, and steps among the others.
// Each is in one schedule of so many; one of addresses has no pools of network interfaces beside it.
var themes = []struct {
	oneIn       int
	draw        func(*draw)
	ofAddresses bool
}{{4, several, false}, {4, edges, true}, {4, ownAddresses, false}, {4, evictions, false}, {6, deaf, false}}

// withThemes draws those of a schedule, from numbers of its own: the others' steps stay as they are.
func (d *draw) withThemes(ofInterfaces bool) {
	for _, t := range themes {
		if d.IntN(t.oneIn) == 0 && (!ofInterfaces || !t.ofAddresses) {
			t.draw(d)
		}
	}
}

// mingle puts steps between others, at places that are drawn, in their order.
func (d *draw) mingle(others []Step) []Step {
	var all []Step
	for _, step := range d.steps {
		for len(others) > 0 && d.IntN(len(others)+len(d.steps)) >= len(d.steps) {
			all, others = append(all, others[0]), others[1:]
		}
		all = append(all, step)
	}
	return append(all, others...)
}

// deaf is an Azure that does not heed If-Match on pools, where what others write meanwhile can be lost,
// and what a dead process has sent can land late: pools are compared often there.
func deaf(d *draw) {
	d.world(func(o *Options) { o.Behaviour.PoolIfMatch = behaviour.Ignored })
	d.configure(func(c *config.Config) { c.DriftSeconds = new(min(*c.DriftSeconds, 600)) })
}

// ownAddress is a public IP that people made for one Service, of several.
func ownAddress(service string, number int) string {
	at := split(service)
	return fmt.Sprintf("of-%s-%s-%d", at.Namespace, at.Name, number)
}

// ownAddresses have Services move between public IPs that people made, one of which comes late, and those
// that Weir makes.
func ownAddresses(d *draw) {
	d.ownAddresses = true
	for _, name := range serviceNames {
		late := d.IntN(4) == 0
		for number := range 2 {
			ip := ownAddress(name, number)
			makes := func(s *Stage) error { return s.PublicIP(ip) }
			if late && number == 1 {
				d.last = append(d.last, Step{0, "people make public IP " + ip, makes})
				continue
			}
			d.first = append(d.first, Step{0, "people make public IP " + ip, makes})
		}
	}
	for range 6 + d.IntN(6) {
		name := pick(d, serviceNames...)
		ip := pick(d, "", ownAddress(name, 0), ownAddress(name, 1))
		d.add(func(s *Stage) error {
			return s.ChangeService(name, func(svc *corev1.Service) { setAnnotation(svc, annotation+"azure-pip-name", ip) })
		}, "Service %s wants the address %q", name, ip)
	}
}
