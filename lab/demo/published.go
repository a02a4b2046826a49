// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/words"
	"weir.dev/weir/lab/armemu"
)

const (
	// linkService is the published Service; consumer is the subscription of the connecting private
	// endpoint.
	linkService = "portal"
	consumer    = "11111111-1111-1111-1111-111111111111"
	// linkCondition is the condition that reports the publication of a Service.
	linkCondition = "weir.dev/PrivateLinkService"
)

// linkAnnotations are the annotations of the Service in act four.
var linkAnnotations = map[string]string{
	"service.beta.kubernetes.io/azure-load-balancer-internal": "true",
	"service.beta.kubernetes.io/azure-pls-create":             "true",
	"service.beta.kubernetes.io/azure-pls-name":               linkService,
	"service.beta.kubernetes.io/azure-pls-visibility":         consumer,
	"service.beta.kubernetes.io/azure-pls-auto-approval":      consumer,
}

// PublishedSummary is the result of act four.
type PublishedSummary struct {
	// Seconds is the time until the Service had its alias, and Removed the time until all its
	// resources were deleted.
	Seconds float64 `json:"secondsUntilPublished"`
	Removed float64 `json:"secondsUntilRemoved"`
	// Order lists the deleted resources in order.
	Order []string `json:"removedInOrder"`
}

// publication is act four. It has its own processes, because Azure does not allow a Private Link
// Service in front of IP-based pools, which the other acts use.
type publication struct {
	*stage
	lab     *lab
	cluster *cluster
	azure   *azureWitness
	PublishedSummary
}

// servicePublished publishes a Service, connects a consumer, and deletes the Service.
func (s *stage) servicePublished(ctx context.Context) error {
	p := &publication{stage: s, lab: &lab{opts: s.lab.opts, dir: filepath.Join(s.lab.dir, "published"), fail: s.lab.fail, place: linkPlace()}}
	if err := os.Mkdir(p.lab.dir, 0o700); err != nil {
		return err
	}
	defer p.lab.stop()
	for _, act := range []func(context.Context) error{p.begin, p.publish, p.connect, p.remove} {
		if err := act(ctx); err != nil {
			return err
		}
	}
	s.published = &p.PublishedSummary
	return p.count(ctx)
}

// begin starts the second cluster, its Azure and Weir.
func (p *publication) begin(ctx context.Context) error {
	p.tell("a second one of %s, whose pools hold network interfaces: Azure has no Private Link Service in front of addresses", words.FormatCount(linkNodes, "node"))
	if err := errors.Join(p.lab.startKubelab(ctx), p.lab.startEmulator(ctx)); err != nil {
		return err
	}
	_, k8s, err := p.lab.furnish(ctx)
	if err != nil {
		return err
	}
	p.cluster, p.azure = k8s, newAzureWitness(p.lab.admin)
	for i := range linkNodes {
		name := fmt.Sprintf("node-%d", i+1)
		if err := k8s.patch(ctx, &corev1.Node{}, "", name, fmt.Sprintf(`{"spec":{"providerID":%q}}`, "azure://"+machineOf(name))); err != nil {
			return err
		}
	}
	return p.lab.startWeir(ctx)
}

// publish creates the Service and waits for its alias.
func (p *publication) publish(ctx context.Context) error {
	began := time.Now()
	p.tell("Service %s, which asks to be published to one subscription", linkService)
	if err := p.cluster.deploy(ctx, workload{linkService}, linkNodes, linkAnnotations); err != nil {
		return err
	}
	var said string
	err := p.await(ctx, "Service "+linkService+" is not published", func() (bool, error) {
		var service corev1.Service
		if err := p.cluster.api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: linkService}, &service); err != nil {
			return false, err
		}
		condition := meta.FindStatusCondition(service.Status.Conditions, linkCondition)
		if condition == nil || condition.Reason != "Published" {
			return false, nil
		}
		said = condition.Message
		shown, err := p.azure.published(ctx)
		return shown.alias != "" && shown.members == linkNodes, err
	})
	p.Seconds = time.Since(began).Seconds()
	if err != nil {
		return err
	}
	p.print.verbatim(bold, "", "$ kubectl -n "+namespace+" get service "+linkService+" -o yaml  # how it is published")
	what, rest, _ := strings.Cut(said, " as ")
	alias, connections, _ := strings.Cut(rest, ": ")
	p.print.plainly(what+" as", alias+":", connections, "") // meant to be copied
	return nil
}

// connect requests a private endpoint connection for the consumer.
func (p *publication) connect(ctx context.Context) error {
	shown, err := p.azure.published(ctx)
	if err != nil {
		return err
	}
	endpoint := "/subscriptions/" + consumer + "/resourceGroups/theirs/providers/Microsoft.Network/privateEndpoints/to-" + linkService
	if err := p.azure.connect(ctx, shown.id, endpoint); err != nil {
		return err
	}
	if shown, err = p.azure.published(ctx); err != nil {
		return err
	}
	if !slices.Equal(shown.connections, []string{"Approved"}) {
		return fmt.Errorf("the consumer's connections are %v, want one that is Approved", shown.connections)
	}
	p.print.line(plain, "azure", fmt.Sprintf("private endpoint %s of subscription %s connects by the alias: Approved", path.Base(endpoint), consumer))
	return nil
}

// remove deletes the Service and checks the order in which its resources are deleted.
func (p *publication) remove(ctx context.Context) error {
	calls, err := p.azure.calls(ctx, 0)
	if err != nil {
		return err
	}
	began, last := time.Now(), calls[len(calls)-1].Seq
	p.tell("Service %s is deleted", linkService)
	service := &corev1.Service{}
	service.Namespace, service.Name = namespace, linkService
	if err := p.cluster.delete(ctx, service); err != nil {
		return err
	}
	err = p.await(ctx, "something is left of Service "+linkService, func() (bool, error) {
		if err := p.cluster.api.Get(ctx, client.ObjectKeyFromObject(service), service); !apierrors.IsNotFound(err) {
			return false, err
		}
		shown, err := p.azure.published(ctx)
		return shown.id == "" && shown.balancers == 0, err
	})
	if err != nil {
		return err
	}
	p.Removed = time.Since(began).Seconds()
	if calls, err = p.azure.calls(ctx, last); err != nil {
		return err
	}
	p.Order = removed(calls)
	if want := []string{"connection", "private link service", "load balancer"}; !slices.Equal(p.Order, want) {
		return fmt.Errorf("removed were %s, want %s", strings.Join(p.Order, ", "), strings.Join(want, ", "))
	}
	return p.showRemoved(ctx)
}

// removed lists the resources of a published Service deleted or changed by calls, ordered by the
// first call for each.
func removed(calls []armemu.Call) []string {
	var order []string
	for _, c := range calls {
		what := ""
		switch {
		case c.Method == http.MethodGet || c.Status >= http.StatusMultipleChoices:
			continue
		case strings.Contains(c.Resource, "/privateEndpointConnections/"):
			what = "connection"
		case strings.Contains(c.Resource, "/privateLinkServices/"):
			what = "private link service"
		case strings.Contains(c.Resource, "/loadBalancers/"):
			what = "load balancer"
		}
		if what != "" && !slices.Contains(order, what) {
			order = append(order, what)
		}
	}
	return order
}

// lastWords are the reasons of the final events.
var lastWords = []string{"PrivateEndpointDisconnected", "PrivateLinkServiceDeleted", "DeletedLoadBalancer"}

// showRemoved prints the final events as kubectl shows them.
func (p *publication) showRemoved(ctx context.Context) error {
	var told []corev1.Event
	err := p.await(ctx, "not all of "+strings.Join(lastWords, ", ")+" were told", func() (all bool, err error) {
		told, err = p.cluster.events(ctx, namespace, func(e corev1.Event) bool { return slices.Contains(lastWords, e.Reason) })
		missing := slices.ContainsFunc(lastWords, func(reason string) bool {
			return !slices.ContainsFunc(told, func(e corev1.Event) bool { return e.Reason == reason })
		})
		return !missing, err
	})
	if err != nil {
		return err
	}
	p.print.verbatim(bold, "", "$ kubectl -n "+namespace+" get events  # the last ones")
	for i := range told {
		p.print.verbatim(plain, eventLines(&told[i], time.Now(), width)...)
	}
	p.print.verbatim(plain, "")
	return nil
}

// await waits for a condition until the step's deadline.
func (p *publication) await(ctx context.Context, otherwise string, happened func() (bool, error)) error {
	limited, cancel := context.WithTimeoutCause(ctx, p.deadline, &notLevel{p.deadline, nil})
	defer cancel()
	err := until(limited, 2*lookEvery, happened)
	if errors.Is(err, context.DeadlineExceeded) || limited.Err() != nil && ctx.Err() == nil {
		return &notLevel{p.deadline, append([]string{otherwise, "the controller's last lines:"}, p.lab.weir.TailLines(8)...)}
	}
	return err
}

// count adds this Azure's calls to the step.
func (p *publication) count(ctx context.Context) error {
	calls, err := p.azure.calls(ctx, 0)
	p.elsewhere = &traffic{}
	for _, c := range calls {
		p.elsewhere.add(c)
	}
	return err
}

// lines returns the lines of the summary.
func (p *PublishedSummary) lines() []string {
	return []string{
		fmt.Sprintf("%-28s%8.1f s", "a Service is published", p.Seconds),
		fmt.Sprintf("%-28s%8.1f s", "it is deleted", p.Removed),
		"What went, in this order: " + strings.Join(p.Order, ", ") + ".",
	}
}
