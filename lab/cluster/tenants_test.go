// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/internal/service"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/shipped"
)

const (
	tenantSteps = 40
	// maxWritesPerWindow limits Weir's writes in any five minutes: its share of Microsoft.Network's
	// 1,000 writes.
	maxWritesPerWindow = 500
)

// tenant is an attacker with the role edit in the namespace shop. Requests that the API server
// rejects have no effect.
type tenant struct {
	*neighbor
	*rand.Rand
	made int
	// gateway is a frontend of a gateway load balancer that no Namespace allows.
	gateway string
}

// serviceName returns one of few Service names, so that names are reused.
func (t *tenant) serviceName() string { return fmt.Sprintf("shop/s%d", t.IntN(attackers)) }

func (t *tenant) editService(key string, edit func(*corev1.Service)) error {
	return t.ChangeService(key, edit)
}

func (t *tenant) annotateService(key, name, value string) error {
	return t.editService(key, func(svc *corev1.Service) { setAnnotation(svc, annotation+name, value) })
}

// neighborAddress returns an address of the neighbor's Services.
func (t *tenant) neighborAddress() string {
	svc := &corev1.Service{}
	failOn(t.userClient.Get(ctx, parseKey("blog/web"), svc))
	return svc.Status.LoadBalancer.Ingress[0].IP
}

func (t *tenant) ownerOfTheirs() string {
	svc := &corev1.Service{}
	failOn(t.userClient.Get(ctx, parseKey("blog/web"), svc))
	return ownerName(svc)
}

// runAction performs and describes a random action.
func (t *tenant) runAction() (string, error) {
	key := t.serviceName()
	acts := []func() (string, error){
		func() (string, error) {
			address := oneOf(t.Rand, t.neighborAddress(), "192.168.0.1", "10.0.0.1", "10.0.9.250", "nonsense")
			return "wants the address " + address, t.annotateService(key, "azure-load-balancer-ipv4", address)
		},
		func() (string, error) {
			on := oneOf(t.Rand, "true", "")
			return "is internal: " + on, t.annotateService(key, "azure-load-balancer-internal", on)
		},
		func() (string, error) {
			name := clusterName + "-" + oneOf(t.Rand, t.ownerOfTheirs(), "no-such")
			return "wants the public IP " + name, t.annotateService(key, "azure-pip-name", name)
		},
		func() (string, error) {
			gateway := oneOf(t.Rand, t.gateway, t.gateway, "nonsense", "")
			return "wants the gateway load balancer " + gateway, t.editService(key, func(svc *corev1.Service) {
				setAnnotation(svc, service.GatewayLoadBalancer, gateway)
				setAnnotation(svc, service.WrittenProperties, "gateway-load-balancer")
			})
		},
		func() (string, error) {
			label := oneOf(t.Rand, "theirs", "mine", "mine-too", "")
			return "wants the DNS label " + label, t.annotateService(key, "azure-dns-label-name", label)
		},
		func() (string, error) {
			address := oneOf(t.Rand, t.neighborAddress(), "10.0.1.4", "10.0.0.1,10.0.0.2")
			return "has the additional addresses " + address, t.annotateService(key, "azure-additional-public-ips", address)
		},
		func() (string, error) { return "is flapping", t.flapServices(key) },
		func() (string, error) { return "has many ports", t.hasPorts(key, 1+t.IntN(100)) },
		func() (string, error) { return "has many ranges", t.hasRanges(key, 1+t.IntN(300)) },
		func() (string, error) {
			return "has service tags", t.annotateService(key, "azure-allowed-service-tags", serviceTags(1+t.IntN(40)))
		},
		func() (string, error) { return "is deleted", t.DeleteService(key) },
		func() (string, error) { return "is created", t.createService(key, nil) },
		func() (string, error) {
			return "is created at the neighbor's address", t.createService(key, func(svc *corev1.Service) {
				setAnnotation(svc, annotation+"azure-load-balancer-ipv4", t.neighborAddress())
				svc.Spec.Ports[0].Port = 8000 + int32(t.IntN(100)) //nolint:gosec // a port
				svc.Spec.LoadBalancerSourceRanges = []string{"203.0.113.0/24"}
				setAnnotation(svc, annotation+"azure-deny-all-except-load-balancer-source-ranges", "true")
			})
		},
		func() (string, error) {
			on := map[int]bool{t.IntN(3): true}
			return fmt.Sprint("has endpoints on ", on), t.SetEndpoints(key, on)
		},
		func() (string, error) {
			return "changes its policy", t.editService(key, func(svc *corev1.Service) {
				setPolicy(svc, oneOf(t.Rand, corev1.ServiceExternalTrafficPolicyLocal, corev1.ServiceExternalTrafficPolicyCluster))
			})
		},
		func() (string, error) {
			return "has the ports of nodes", t.annotateService(key, "azure-disable-load-balancer-floating-ip", oneOf(t.Rand, "true", ""))
		},
		func() (string, error) {
			return "has all ports", t.annotateService(key, "azure-load-balancer-enable-high-availability-ports", oneOf(t.Rand, "true", ""))
		},
		func() (string, error) { return "has type ClusterIP", t.editService(key, setClusterIPType) },
		func() (string, error) {
			return "has no finalizers", t.editService(key, func(svc *corev1.Service) { svc.Finalizers = nil })
		},
		func() (string, error) {
			return "claims records", t.editService(key, func(svc *corev1.Service) {
				setAnnotation(svc, placementLabel, oneOf(t.Rand, clusterName, clusterName+","+clusterName+"-internal", "no-such"))
				svc.Labels = map[string]string{"app.kubernetes.io/managed-by": "weir"}
				svc.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: "web", UID: "11111111-2222-3333-4444-555555555555"}}
			})
		},
		func() (string, error) {
			ip := namespaceIPName("blog")
			return "wants the public IP " + ip + " and another label", t.editService(key, func(svc *corev1.Service) {
				setAnnotation(svc, annotation+"azure-pip-name", ip)
				setAnnotation(svc, annotation+"azure-dns-label-name", oneOf(t.Rand, "", "mine"))
				svc.Spec.Ports[0].Port = 8000 + int32(t.IntN(100)) //nolint:gosec // a port
			})
		},
		func() (string, error) { // two of them leave node ports for the neighbor
			key := fmt.Sprintf("shop/s%d", t.IntN(2))
			return "has 748 ports as " + key, t.hasPorts(key, 748)
		},
		func() (string, error) {
			return "has 1000 service tags", t.annotateService(key, "azure-allowed-service-tags", serviceTags(1000))
		},
	}
	subject, err := acts[t.IntN(len(acts))]()
	return "Service " + key + " " + subject, err
}

func oneOf[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// flapServices changes several Services in turn, as fast as a client can, for a few seconds.
func (t *tenant) flapServices(key string) error {
	edit := oneOf(t.Rand, flapping...)
	for round := range 30 {
		if err := edit.step(t.Stage, key, round); err != nil {
			return err
		}
		t.Sleep(100 * time.Millisecond)
		key = t.serviceName()
	}
	return nil
}

func (t *tenant) createService(key string, edit func(*corev1.Service)) error {
	t.made++
	return t.AddService(key, edit)
}

func (t *tenant) hasPorts(key string, count int) error {
	return t.editService(key, func(svc *corev1.Service) {
		svc.Spec.Ports = nil
		for i := range count {
			port := int32(1000 + i) //nolint:gosec // a port
			svc.Spec.Ports = append(svc.Spec.Ports, corev1.ServicePort{Name: fmt.Sprint("p", port), Port: port, Protocol: corev1.ProtocolTCP})
		}
	})
}

func (t *tenant) hasRanges(key string, count int) error {
	return t.editService(key, func(svc *corev1.Service) {
		svc.Spec.LoadBalancerSourceRanges = nil
		for i := range count {
			svc.Spec.LoadBalancerSourceRanges = append(svc.Spec.LoadBalancerSourceRanges, fmt.Sprintf("100.%d.%d.0/24", 64+i/256, i%256))
		}
	})
}

func serviceTags(count int) string {
	tags := make([]string, count)
	for i := range tags {
		tags[i] = fmt.Sprintf("Storage.Region%d", i)
	}
	return strings.Join(tags, ",")
}

// renderState renders all Azure resources of the neighbor's Services: addresses, frontends, rules,
// probes, labeled public IPs and security rules.
func (n *neighbor) renderState(keys ...string) []string {
	c, err := n.readAzure()
	failOn(err)
	var names []string
	for _, key := range keys {
		svc := &corev1.Service{}
		failOn(n.userClient.Get(ctx, parseKey(key), svc))
		for _, in := range svc.Status.LoadBalancer.Ingress {
			names = append(names, key+" shows "+in.IP)
		}
		label, got := frontendLabel(svc, corev1.IPv4Protocol), ownerName(svc)
		for _, b := range c.balancers {
			for _, f := range b.Properties.Frontends {
				if f.publicLabel() == label {
					names = append(names, fmt.Sprintf("%s: frontend %s of %s: %s", key, f.Name, b.Name, c.frontendAddress(f)))
				}
			}
			for _, r := range b.Properties.Rules {
				if strings.HasPrefix(r.Name, got) {
					text, err := json.Marshal(r)
					failOn(err)
					names = append(names, key+": rule "+string(text))
				}
			}
			for _, p := range b.Properties.Probes {
				if strings.HasPrefix(p.Name, got) {
					text, err := json.Marshal(p)
					failOn(err)
					names = append(names, key+": probe "+string(text))
				}
			}
		}
		for id, ip := range c.addresses {
			if ip.Name == publicIPName(svc, corev1.IPv4Protocol) {
				names = append(names, fmt.Sprintf("%s: public IP %s: %s, label %q", key, id, ip.Properties.IP, ip.Properties.DNS.Label))
			}
		}
		single := objects{services: []corev1.Service{*svc}}
		for flow := range single.sampledFlows(c.addressOf) {
			if slices.ContainsFunc(svc.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == flow.port }) {
				names = append(names, fmt.Sprintf("%s: admits %s: %t", key, flow, c.isAllowed(flow.from, flow.to, flow.protocol, flow.port)))
			}
		}
	}
	return names
}

// writesPerWindow returns Weir's maximum number of writes in any five minutes.
func (s *Stage) writesPerWindow() int {
	writes := s.emulator.Calls(armemu.ByKind(armemu.KindPut, armemu.KindPatch, armemu.KindDelete, armemu.KindAction))
	limit, first := 0, 0
	for i, w := range writes {
		for w.Time.Sub(writes[first].Time) >= 5*time.Minute {
			first++
		}
		limit = max(limit, i-first+1)
	}
	return limit
}

// playTenants runs a random attack, checks after each step that the neighbor's resources are
// unchanged, and sometimes that its changes are not delayed.
func playTenants(t *testing.T, seed uint64, undisturbed lags) {
	t.Helper()
	role := *shipped.AzureRole()
	role.Actions = append(slices.Clone(role.Actions), "Microsoft.Network/loadBalancers/frontendIPConfigurations/join/action")
	opts := Options{Seed: seed, Role: &role, Limits: armemu.AzureLimits(), Latency: armemu.Busy, LatencyScale: twoSecondWrites}
	runStage(t, opts, func(s *Stage) {
		n := newNeighbor(s, nil)
		a := &tenant{neighbor: n, Rand: rand.New(rand.NewPCG(seed, 69)), gateway: s.createGateway("inspect")} //nolint:gosec // repeatable on purpose
		keys := []string{"blog/web", "blog/named"}
		before := n.renderState(keys...)
		s.emulator.ClearCalls()
		for step := range tenantSteps {
			name, err := a.runAction()
			s.logs.addAction("%s: %v", name, err)
			if err != nil && apierrors.ReasonForError(err) == metav1.StatusReasonUnknown {
				failOn(fmt.Errorf("%s: %w", name, err))
			}
			s.Sleep(oneOf(a.Rand, 0, 300*time.Millisecond, 3*time.Second, 20*time.Second))
			for _, differs := range append(diffLines(before, n.renderState(keys...)), append(s.checkUserIPs(), s.Violations(), a.checkGateways())...) {
				if differs != nil {
					failOn(fmt.Errorf("step %d, after %s: neighbor: %w", step, name, differs))
				}
			}
			if step%8 != 7 {
				continue
			}
			n.attack = func(string, int) error { _, err := a.runAction(); return ignoreRejected(err) }
			if elapsed := n.moveEndpoint(step / 8 % 3); elapsed > maxRatio*undisturbed.endpoint {
				failOn(fmt.Errorf("step %d: the neighbor's endpoint change took %s, want at most %d times %s", step, elapsed, maxRatio, undisturbed.endpoint))
			}
			key := fmt.Sprintf("blog/new-%d", step)
			if elapsed := n.addService(key); elapsed > maxServiceRatio*undisturbed.service {
				failOn(fmt.Errorf("step %d: the neighbor's new Service took %s, want at most %d times %s", step, elapsed, maxServiceRatio, undisturbed.service))
			}
			keys = append(keys, key)
			s.Sleep(20 * time.Second)
			before = n.renderState(keys...)
		}
		if limit := s.writesPerWindow(); limit > maxWritesPerWindow {
			failOn(fmt.Errorf("%d writes in five minutes, want at most %d", limit, maxWritesPerWindow))
		}
		t.Logf("seed %d: %d writes in five minutes", seed, s.writesPerWindow())
	})
}

// checkGateways returns an error if a frontend of the tenant has the gateway load balancer.
func (t *tenant) checkGateways() error {
	c, err := t.readAzure()
	for _, b := range c.balancers {
		for _, f := range b.Properties.Frontends {
			if f.Properties.Gateway != nil {
				err = fmt.Errorf("frontend %s of %s has gateway load balancer %s", f.Name, b.Name, f.Properties.Gateway.ID)
			}
		}
	}
	return err
}

func ignoreRejected(err error) error {
	if apierrors.ReasonForError(err) != metav1.StatusReasonUnknown {
		return nil
	}
	return err
}

// maxServiceRatio limits the delay of the neighbor's new Service relative to the undisturbed one.
const maxServiceRatio = 3

// A namespace keeps its Azure resources, and its changes are not delayed by another namespace.
func TestSeedsOfTwoTenants(t *testing.T) {
	undisturbed := measureNeighbor(t, nil, nil)
	count := max(*seeds/10, 1)
	if testing.Short() {
		count = min(count, 1)
	}
	for i := range count {
		seed := *firstSeed + uint64(i) //nolint:gosec // small
		t.Run(fmt.Sprint(seed), func(t *testing.T) { playTenants(t, seed, undisturbed) })
	}
}

// The picture shows every change of the neighbor's Azure resources.
func TestThePictureShowsWhatIsTaken(t *testing.T) {
	runStage(t, Options{Latency: armemu.Busy, LatencyScale: twoSecondWrites}, func(s *Stage) {
		n := newNeighbor(s, nil)
		keys := []string{"blog/web", "blog/named"}
		before := n.renderState(keys...)
		if count := len(before); count < 12 {
			t.Fatalf("the picture has %d lines: %v", count, before)
		}
		edits := 0
		for _, r := range []string{s.theirIP("blog/web"), network + "loadBalancers/" + clusterName, securityGroup} {
			previous, ok := s.emulator.Get(r)
			if !ok {
				t.Fatalf("no %s", r)
			}
			for old, other := range map[string]string{`"domainNameLabel":"theirs"`: `"domainNameLabel":"mine"`, `"frontendPort":80`: `"frontendPort":81`, `"192.0.2.0/25"`: `"0.0.0.0/0"`} {
				if text := strings.ReplaceAll(string(previous), old, other); text != string(previous) {
					edits++
					failOn(s.emulator.Put(r, []byte(text)))
					if len(diffLines(before, n.renderState(keys...))) == 0 {
						t.Errorf("%s instead of %s in %s is not noticed", other, old, r)
					}
					failOn(s.emulator.Put(r, previous))
				}
			}
		}
		if edits != 3 {
			t.Errorf("%d edits, want one of each resource", edits)
		}
	})
}

// theirIP returns the id of the public IP that Weir created for a Service.
func (s *Stage) theirIP(key string) string {
	svc := &corev1.Service{}
	failOn(s.userClient.Get(ctx, parseKey(key), svc))
	return network + "publicIPAddresses/" + publicIPName(svc, corev1.IPv4Protocol)
}
