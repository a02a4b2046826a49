// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/config"
)

// themes add steps and world options to some schedules. Each is part of one schedule in n; address
// themes exclude pools of network interfaces.
var themes = []struct {
	oneIn       int
	draw        func(*draw)
	ofAddresses bool
}{{4, several, false}, {4, edges, true}, {4, ownAddresses, false}, {4, evictions, false}, {6, deaf, false}}

// withThemes draws the themes of a schedule from a separate random source, so other steps do not
// change.
func (d *draw) withThemes(ofInterfaces bool) {
	for _, t := range themes {
		if d.IntN(t.oneIn) == 0 && (!ofInterfaces || !t.ofAddresses) {
			t.draw(d)
		}
	}
}

// mingle inserts steps at random positions and keeps their order.
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

// deaf is an Azure that ignores If-Match on pools. Foreign writes can be lost and requests of dead
// processes can land late, so pools are compared often.
func deaf(d *draw) {
	d.world(func(o *Options) { o.Behaviour.PoolIfMatch = behaviour.Ignored })
	d.configure(func(c *config.Config) { c.DriftSeconds = new(min(*c.DriftSeconds, 600)) })
}

// ownAddress returns the name of a user's public IP for one Service.
func ownAddress(service string, number int) string {
	at := split(service)
	return fmt.Sprintf("of-%s-%s-%d", at.Namespace, at.Name, number)
}

// ownAddresses moves Services between public IPs created by users, one of them late, and those
// created by Weir.
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
