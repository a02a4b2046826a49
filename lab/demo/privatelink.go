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

	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/lab/armemu"
)

const (
	// The published Service, and the subscription of the connecting private endpoint.
	linkServiceName      = "portal"
	consumerSubscription = "11111111-1111-1111-1111-111111111111"
	// linkCondition is the condition that reports the publication of a Service.
	linkCondition = "weir.dev/PrivateLinkService"
)

// linkAnnotations are the annotations of the Service in act four.
var linkAnnotations = map[string]string{
	"service.beta.kubernetes.io/azure-load-balancer-internal": "true",
	"service.beta.kubernetes.io/azure-pls-create":             "true",
	"service.beta.kubernetes.io/azure-pls-name":               linkServiceName,
	"service.beta.kubernetes.io/azure-pls-visibility":         consumerSubscription,
	"service.beta.kubernetes.io/azure-pls-auto-approval":      consumerSubscription,
}

// PrivateLinkSummary is the result of act four.
type PrivateLinkSummary struct {
	// Seconds is the time until the Service had its alias, and Removed the time until all its
	// resources were deleted.
	Seconds float64 `json:"secondsUntilPublished"`
	Removed float64 `json:"secondsUntilRemoved"`
	// Order lists the deleted resources in order.
	Order []string `json:"removedInOrder"`
}

// privateLinkAct is act four. It has its own processes, because Azure does not allow a Private Link
// Service in front of IP-based pools, which the other acts use.
type privateLinkAct struct {
	*stage
	lab     *lab
	cluster *cluster
	azure   *azureObserver
	PrivateLinkSummary
}

// publishService publishes a Service, connects a consumer, and deletes the Service.
func (s *stage) publishService(ctx context.Context) error {
	p := &privateLinkAct{stage: s, lab: &lab{opts: s.lab.opts, dir: filepath.Join(s.lab.dir, "published"), onExit: s.lab.onExit, onLeaseLoss: s.lab.onLeaseLoss, place: privateLinkEnvironment()}}
	if err := os.Mkdir(p.lab.dir, 0o700); err != nil {
		return err
	}
	defer p.lab.stopAll()
	for _, act := range []func(context.Context) error{p.startCluster, p.createService, p.connectConsumer, p.deleteService} {
		if err := act(ctx); err != nil {
			return err
		}
	}
	s.privateLink = &p.PrivateLinkSummary
	return p.countCalls(ctx)
}

// startCluster starts the second cluster, its Azure and Weir.
func (p *privateLinkAct) startCluster(ctx context.Context) error {
	p.printAction("a second one of %s, whose pools hold network interfaces: Azure has no Private Link Service in front of addresses", humanize.FormatCount(linkNodes, "node"))
	if err := errors.Join(p.lab.startControlPlane(ctx), p.lab.startEmulator(ctx)); err != nil {
		return err
	}
	_, k8s, err := p.lab.installBase(ctx)
	if err != nil {
		return err
	}
	p.cluster, p.azure = k8s, newAzureObserver(p.lab.admin)
	for i := range linkNodes {
		name := fmt.Sprintf("node-%d", i+1)
		if err := k8s.patchObject(ctx, &corev1.Node{}, "", name, fmt.Sprintf(`{"spec":{"providerID":%q}}`, "azure://"+machineID(name))); err != nil {
			return err
		}
	}
	return p.lab.startController(ctx)
}

// createService creates the Service and waits for its alias.
func (p *privateLinkAct) createService(ctx context.Context) error {
	began := time.Now()
	p.printAction("Service %s, which asks to be published to one subscription", linkServiceName)
	if err := p.cluster.createWorkload(ctx, workload{linkServiceName}, linkNodes, linkAnnotations); err != nil {
		return err
	}
	var message string
	err := p.waitForStep(ctx, "Service "+linkServiceName+" is not published", func() (bool, error) {
		var service corev1.Service
		if err := p.cluster.api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: linkServiceName}, &service); err != nil {
			return false, err
		}
		condition := meta.FindStatusCondition(service.Status.Conditions, linkCondition)
		if condition == nil || condition.Reason != "Published" {
			return false, nil
		}
		message = condition.Message
		shown, err := p.azure.readPrivateLink(ctx)
		return shown.alias != "" && shown.members == linkNodes, err
	})
	p.Seconds = time.Since(began).Seconds()
	if err != nil {
		return err
	}
	p.print.printVerbatim(boldText, "", "$ kubectl -n "+namespace+" get service "+linkServiceName+" -o yaml  # how it is published")
	resource, rest, _ := strings.Cut(message, " as ")
	alias, connections, _ := strings.Cut(rest, ": ")
	p.print.printPlain(resource+" as", alias+":", connections, "") // meant to be copied
	return nil
}

// connectConsumer requests a private endpoint connection for the consumer.
func (p *privateLinkAct) connectConsumer(ctx context.Context) error {
	shown, err := p.azure.readPrivateLink(ctx)
	if err != nil {
		return err
	}
	endpoint := "/subscriptions/" + consumerSubscription + "/resourceGroups/theirs/providers/Microsoft.Network/privateEndpoints/to-" + linkServiceName
	if err := p.azure.connectEndpoint(ctx, shown.id, endpoint); err != nil {
		return err
	}
	if shown, err = p.azure.readPrivateLink(ctx); err != nil {
		return err
	}
	if !slices.Equal(shown.connections, []string{"Approved"}) {
		return fmt.Errorf("the consumer's connections are %v, want one that is Approved", shown.connections)
	}
	p.print.printLine(plainText, "azure", fmt.Sprintf("private endpoint %s of subscription %s connects by the alias: Approved", path.Base(endpoint), consumerSubscription))
	return nil
}

// deleteService deletes the Service and checks the order in which its resources are deleted.
func (p *privateLinkAct) deleteService(ctx context.Context) error {
	calls, err := p.azure.listCalls(ctx, 0)
	if err != nil {
		return err
	}
	began, last := time.Now(), calls[len(calls)-1].Seq
	p.printAction("Service %s is deleted", linkServiceName)
	service := &corev1.Service{}
	service.Namespace, service.Name = namespace, linkServiceName
	if err := p.cluster.deleteObject(ctx, service); err != nil {
		return err
	}
	err = p.waitForStep(ctx, "something is left of Service "+linkServiceName, func() (bool, error) {
		if err := p.cluster.api.Get(ctx, client.ObjectKeyFromObject(service), service); !apierrors.IsNotFound(err) {
			return false, err
		}
		shown, err := p.azure.readPrivateLink(ctx)
		return shown.id == "" && shown.balancers == 0, err
	})
	if err != nil {
		return err
	}
	p.Removed = time.Since(began).Seconds()
	if calls, err = p.azure.listCalls(ctx, last); err != nil {
		return err
	}
	p.Order = deletedResources(calls)
	if want := []string{"connection", "private link service", "load balancer"}; !slices.Equal(p.Order, want) {
		return fmt.Errorf("removed were %s, want %s", strings.Join(p.Order, ", "), strings.Join(want, ", "))
	}
	return p.printRemoved(ctx)
}

// deletedResources lists the resources of a published Service deleted or changed by calls, ordered by the
// first call for each.
func deletedResources(calls []armemu.Call) []string {
	var order []string
	for _, c := range calls {
		text := ""
		switch {
		case c.Method == http.MethodGet || c.Status >= http.StatusMultipleChoices:
			continue
		case strings.Contains(c.Resource, "/privateEndpointConnections/"):
			text = "connection"
		case strings.Contains(c.Resource, "/privateLinkServices/"):
			text = "private link service"
		case strings.Contains(c.Resource, "/loadBalancers/"):
			text = "load balancer"
		}
		if text != "" && !slices.Contains(order, text) {
			order = append(order, text)
		}
	}
	return order
}

// finalReasons are the reasons of the final events.
var finalReasons = []string{"PrivateEndpointDisconnected", "PrivateLinkServiceDeleted", "DeletedLoadBalancer"}

// printRemoved prints the final events as kubectl shows them.
func (p *privateLinkAct) printRemoved(ctx context.Context) error {
	var events []corev1.Event
	err := p.waitForStep(ctx, "not all of "+strings.Join(finalReasons, ", ")+" were told", func() (all bool, err error) {
		events, err = p.cluster.listEvents(ctx, namespace, func(e corev1.Event) bool { return slices.Contains(finalReasons, e.Reason) })
		missing := slices.ContainsFunc(finalReasons, func(reason string) bool {
			return !slices.ContainsFunc(events, func(e corev1.Event) bool { return e.Reason == reason })
		})
		return !missing, err
	})
	if err != nil {
		return err
	}
	p.print.printVerbatim(boldText, "", "$ kubectl -n "+namespace+" get events  # the last ones")
	for i := range events {
		p.print.printVerbatim(plainText, eventLines(&events[i], time.Now(), width)...)
	}
	p.print.printVerbatim(plainText, "")
	return nil
}

// waitForStep waits for a condition until the step's deadline.
func (p *privateLinkAct) waitForStep(ctx context.Context, otherwise string, happened func() (bool, error)) error {
	limited, cancel := context.WithTimeoutCause(ctx, p.deadline, &syncTimeoutError{p.deadline, nil})
	defer cancel()
	err := pollUntil(limited, 2*pollInterval, happened)
	if errors.Is(err, context.DeadlineExceeded) || limited.Err() != nil && ctx.Err() == nil {
		return &syncTimeoutError{p.deadline, append([]string{otherwise, "the controller's last lines:"}, p.lab.controller.latest().TailLines(8)...)}
	}
	return err
}

// countCalls adds this Azure's calls to the step.
func (p *privateLinkAct) countCalls(ctx context.Context) error {
	calls, err := p.azure.listCalls(ctx, 0)
	p.otherTraffic = &traffic{}
	for _, c := range calls {
		p.otherTraffic.addCall(c)
	}
	return err
}

func (p *PrivateLinkSummary) formatLines() []string {
	return []string{
		fmt.Sprintf("%-28s%8.1f s", "a Service is published", p.Seconds),
		fmt.Sprintf("%-28s%8.1f s", "it is deleted", p.Removed),
		"What went, in this order: " + strings.Join(p.Order, ", ") + ".",
	}
}
