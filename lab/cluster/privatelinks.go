// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/config"
)

// addPrivateLinks schedules Services that request and withdraw Private Link Services, consumers that
// connect, and Azure faults.
func (b *scheduleBuilder) addPrivateLinks() {
	b.addConfig(func(c *config.Config) { c.DisableSubnetPolicies = true })
	for range 8 + b.IntN(8) {
		name := pickOne(b, serviceNames...)
		switch b.IntN(8) {
		case 0, 1, 2, 3:
			create := pickOne(b, "true", "true", "true", "")
			b.addStep(func(s *Stage) error {
				return s.ChangeService(name, func(svc *corev1.Service) { setAnnotation(svc, annotation+"azure-pls-create", create) })
			}, "Service %s is to be published: %q", name, create)
		case 4:
			fqdns := pickOne(b, "", "a.example", "a.example b.example")
			b.addStep(func(s *Stage) error {
				return s.ChangeService(name, func(svc *corev1.Service) { setAnnotation(svc, annotation+"azure-pls-fqdns", fqdns) })
			}, "Service %s has the names %q", name, fqdns)
		case 5, 6:
			number := b.IntN(100)
			b.addStep(func(s *Stage) error { return s.connectConsumer(number) }, "consumer %d connects to all that is published", number)
		default:
			kind := pickOne(b, "put", "put", "delete", "list", "get", "poll")
			action := pickOne(b,
				"{status: 429, code: RetryableError, message: busy, headers: {Retry-After: '7'}}",
				"{status: 409, code: Conflict, message: another request}",
				"{status: 500, code: InternalServerError, message: broken}",
				"{drop: true}", "{drop: true, applied: true}", "{bumpEtag: true}",
			)
			text := fmt.Sprintf("{name: fault, match: {path: %q, kind: %s, maxMatches: %d}, action: %s}", "privateLinkServices/*", kind, 1+b.IntN(4), action)
			b.addStep(func(s *Stage) error { return s.AzureFaults(text) }, "Azure: %s", text)
		}
	}
}

// linkService is a Private Link Service as Azure returns it.
type linkService struct {
	ID         string            `json:"id"`
	Tags       map[string]string `json:"tags"`
	Properties struct {
		Frontends []reference `json:"loadBalancerFrontendIpConfigurations"`
	} `json:"properties"`
}

func (s *Stage) listLinkServices() ([]linkService, error) {
	var resources []struct {
		ID   string          `json:"id"`
		Body json.RawMessage `json:"body"`
	}
	if err := json.Unmarshal(s.emulator.Snapshot(), &resources); err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	var links []linkService
	for _, r := range resources {
		if !strings.Contains(strings.ToLower(r.ID), "/privatelinkservices/") {
			continue
		}
		var l linkService
		if err := json.Unmarshal(r.Body, &l); err != nil {
			return nil, fmt.Errorf("%s: %w", r.ID, err)
		}
		links = append(links, l)
	}
	return links, nil
}

// connectConsumer requests a private endpoint connection to each Private Link Service that is not being
// written.
func (s *Stage) connectConsumer(number int) error {
	links, err := s.listLinkServices()
	for _, l := range links {
		_, _ = s.emulator.Connect(l.ID, fmt.Sprintf("%sprivateEndpoints/pe%d", network, number)) // fails while it is being written
	}
	return err
}

// checkLinkServices compares the Private Link Services with those requested.
func (s *Stage) checkLinkServices(f objects, c azureState) []error {
	links, err := s.listLinkServices()
	if err != nil {
		return []error{err}
	}
	var errs []error
	of := map[string]linkService{} // by load balancer and frontend
	for _, l := range links {
		for _, id := range l.Properties.Frontends {
			parts := strings.Split(id.ID, "/")
			of[strings.ToLower(parts[8]+"/"+parts[10])] = l
		}
	}
	for _, b := range c.balancers {
		six := slices.ContainsFunc(b.Properties.Rules, func(r rule) bool { return strings.HasSuffix(strings.ToLower(r.Properties.Pool.lastSegment()), "-ipv6") })
		for _, front := range b.Properties.Frontends {
			var asks, on []string
			for i := range f.services {
				svc := &f.services[i]
				if !isManaged(svc) || !slices.ContainsFunc(b.Properties.Rules, func(r rule) bool {
					return r.Properties.Frontend.lastSegment() == front.Name && strings.HasPrefix(r.Name, ownerName(svc))
				}) {
					continue
				}
				key := svc.Namespace + "/" + svc.Name
				if on = append(on, key); svc.Annotations[annotation+"azure-pls-create"] == "true" {
					asks = append(asks, key)
				}
			}
			l, published := of[strings.ToLower(b.Name+"/"+front.Name)]
			delete(of, strings.ToLower(b.Name+"/"+front.Name))
			switch by := l.Tags["k8s-azure-owner-service"]; {
			case six: // Azure accepts none and keeps the previous one
			case published && len(asks) == 0:
				errs = append(errs, fmt.Errorf("frontend %s of %s is published for %s, and nobody of %v asks for that", front.Name, b.Name, by, on))
			case !published && len(asks) > 0:
				errs = append(errs, fmt.Errorf("frontend %s of %s is not published, and %v ask for that", front.Name, b.Name, asks))
			case published && !slices.Contains(asks, by):
				errs = append(errs, fmt.Errorf("what publishes frontend %s of %s is of %s, and %v ask for that", front.Name, b.Name, by, asks))
			}
		}
	}
	for at := range of {
		errs = append(errs, fmt.Errorf("frontend %s is published, and not there", at))
	}
	return errs
}
