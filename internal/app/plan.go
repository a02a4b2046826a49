// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/azure"
	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/kube"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/metrics"
	"weir.dev/weir/internal/poolupdate"
	"weir.dev/weir/internal/rehearse"
	"weir.dev/weir/internal/rehearse/view"
	"weir.dev/weir/internal/service"
)

// PlanOptions are what is planned.
type PlanOptions struct {
	Options
	// Namespace and Service limit the plan; empty is all. A Service without a namespace is
	// of that which is called default.
	Namespace, Service string
	// Files have the objects, in place of a cluster; "-" is Stdin.
	Files []string
	Stdin io.Reader
	// ServerDryRun has the API server check the objects of the files, too.
	ServerDryRun bool
}

// planning is one plan on its way.
type planning struct {
	PlanOptions
	cfg       config.Config
	cluster   *kube.Offline
	rehearsal *rehearse.Rehearsal
	objects   kube.Objects
	record    kube.Record // of the cluster, if it can be read
	owners    map[string]string
	unasked   []view.Service    // those for which nothing is asked, and why
	noEffect  map[string]string // restrictions without effect, by Service
	requests  []balancer.Request
	results   []balancer.Result
}

// Plan returns what the controller would change in Azure if it started now. It writes
// nothing. With an error that is Azure's the plan is not complete.
func Plan(ctx context.Context, o PlanOptions) (view.Plan, error) {
	if o.Service != "" && o.Namespace == "" {
		o.Namespace = metav1.NamespaceDefault
	}
	if err := o.checkNames(); err != nil {
		return view.Plan{}, err
	}
	cfg, ignored, err := config.Load(o.ConfigFile)
	if err != nil {
		return view.Plan{}, &UsageError{fmt.Errorf("--config: %w", err)}
	}
	if warning := ignored.Warning(); warning != "" {
		o.Log.Warn(warning, "config", o.ConfigFile)
	}
	if o.known, err = behaviourOf(o.Options); err != nil {
		return view.Plan{}, err
	}
	settings, err := balancerSettings(cfg, o.ClusterName)
	if err != nil {
		return view.Plan{}, &UsageError{fmt.Errorf("%s: %w", o.ConfigFile, err)}
	}
	client, err := newAzure(o.Options, cfg, metrics.NewARM(prometheus.NewRegistry()), nil, nil)
	if err != nil {
		return view.Plan{}, err
	}
	p := &planning{PlanOptions: o, cfg: cfg, owners: map[string]string{}, noEffect: map[string]string{}}
	if err := p.gather(ctx); err != nil {
		return view.Plan{}, err
	}
	if err := p.stage(settings, client); err != nil {
		return view.Plan{}, err
	}
	return p.play(ctx)
}

// gather reads the objects.
func (p *planning) gather(ctx context.Context) error {
	if len(p.Files) > 0 {
		return p.readFiles(ctx)
	}
	if p.ServerDryRun {
		return &UsageError{errors.New("--server-dry-run checks the objects of files: it goes with -f")}
	}
	rc, _, err := clusterConfig(p.Kubeconfig)
	if err != nil {
		return err
	}
	rc.QPS, rc.UserAgent = -1, "weir/"+Version
	reader, err := client.New(rc, client.Options{Scheme: kube.Scheme()})
	if err != nil {
		return fmt.Errorf("API server %s: %w", rc.Host, err)
	}
	if p.objects, err = kube.ReadObjects(ctx, reader, true); err != nil {
		return fmt.Errorf("API server %s: %w", rc.Host, err)
	}
	p.record = readRecord(ctx, reader, p.objects)
	return nil
}

func (p *planning) readFiles(ctx context.Context) error {
	var broken []error
	for _, name := range p.Files {
		from, called := p.Stdin, "standard input"
		if name != "-" {
			file, err := os.Open(name) //nolint:gosec // whoever calls names the files
			if err != nil {
				return &UsageError{fmt.Errorf("-f: %w", err)}
			}
			defer file.Close()
			from, called = file, name
		}
		broken = append(broken, p.objects.Decode("-f "+called, from)...)
	}
	if len(broken) == 0 {
		broken = p.objects.Homeless()
	}
	if len(broken) == 0 && p.ServerDryRun {
		var err error
		if broken, err = p.checkAtServer(ctx); err != nil {
			return err
		}
	}
	if len(broken) > 0 {
		return &UsageError{manyErrors(broken)}
	}
	if twice := p.objects.Twice(); twice != "" {
		return &UsageError{fmt.Errorf("-f: %s is there twice: leave one of them out", twice)}
	}
	return nil
}

// stage puts the objects where the controller would see them, and everything that it writes
// with in front of a shadow.
func (p *planning) stage(settings balancer.Settings, client *azure.Client) error {
	p.cluster = kube.NewOffline(kube.Options{
		SubscriptionID: p.cfg.SubscriptionID, ResourceGroup: p.cfg.BackendResourceGroup(),
		ExcludeControlPlane: p.cfg.ExcludesMaster(), Draining: p.cfg.Signals(),
	})
	p.rehearsal = rehearse.New(balancer.Config{Settings: settings, Cluster: p.cluster, Behaviour: p.known}, client)
	namespace := kube.NamespaceOfNodePools(p.objects.Pools, systemNamespace)
	p.cluster.Balance(p.rehearsal, balancingOf(p.Options, p.cfg, settings, client, namespace))
	for i := range p.objects.Services { // whoever names one wants to know what it would change
		if s := &p.objects.Services[i]; p.Service != "" && p.chosen(s.Namespace, s.Name) && kube.IsDryRun(s) {
			delete(s.Annotations, kube.DryRunAnnotation)
		}
	}
	if len(p.Files) > 0 {
		p.cluster.AllowUnseen()
	}
	return p.cluster.Fill(p.objects)
}

// play has everybody do his part.
func (p *planning) play(ctx context.Context) (view.Plan, error) {
	none := view.Plan{}
	if err := p.cluster.PlaceNodes(ctx); err != nil {
		return none, err
	}
	if err := p.ask(ctx); err != nil {
		return none, err
	}
	var err error
	if p.results, err = p.rehearsal.Play(ctx, p.requests); err != nil {
		return none, err
	}
	var failed []error
	for _, r := range p.results {
		if err := p.cluster.Settle(ctx, r); err != nil {
			return none, fmt.Errorf("Service %s: %w", r.Service, err) //nolint:staticcheck // a Service is a name
		}
		if _, ofAzure := errors.AsType[*fault.Fault](r.Err); ofAzure {
			failed = append(failed, fmt.Errorf("Service %s: %w", r.Service, r.Err)) //nolint:staticcheck // a Service is a name
		}
	}
	left, err := p.fill(ctx)
	if err != nil {
		return none, err
	}
	shown := p.show(left)
	switch more := len(failed) - 1; {
	case more > 0:
		return shown, fmt.Errorf("the plan is not complete: %w (and %d more)", failed[0], more)
	case more == 0:
		return shown, fmt.Errorf("the plan is not complete: %w", failed[0])
	}
	return shown, nil
}

func (p *planning) chosen(namespace, name string) bool {
	return (p.Namespace == "" || p.Namespace == namespace) && (p.Service == "" || p.Service == name)
}

// ask collects the requests of the chosen Services.
func (p *planning) ask(ctx context.Context) error {
	found := false
	for _, s := range p.cluster.Served() {
		name := s.Namespace + "/" + s.Name
		p.owners[service.Owner(string(s.UID))] = name
		if !p.chosen(s.Namespace, s.Name) {
			continue
		}
		found = true
		if why := p.cluster.Kept(s); why != "" {
			p.unasked = append(p.unasked, view.Service{Service: name, Kept: why})
			continue
		}
		p.noEffect[name] = p.cluster.Unenforced(s)
		if kube.IsDryRun(s) {
			p.unasked = append(p.unasked, view.Service{Service: name, Note: kube.DryRunAnnotation + " is set, and nothing is changed for it; name the Service to see its plan"})
			continue
		}
		req, refused, err := p.cluster.Ask(ctx, s)
		switch {
		case err != nil:
			return fmt.Errorf("Service %s: %w", name, err) //nolint:staticcheck // a Service is a name
		case refused != "":
			p.unasked = append(p.unasked, view.Service{Service: name, Refused: refused})
		case req.Service != "":
			p.requests = append(p.requests, req)
		}
	}
	if p.Service != "" && !found {
		return p.notServed()
	}
	return nil
}

// notServed says why there is nothing to plan for the Service that was named.
func (p *planning) notServed() error {
	name := p.Namespace + "/" + p.Service
	at := slices.IndexFunc(p.objects.Services, func(s corev1.Service) bool { return s.Namespace == p.Namespace && s.Name == p.Service })
	if at < 0 {
		if p.Namespace == metav1.NamespaceDefault {
			return fmt.Errorf("there is no Service %s: -n names another namespace", name)
		}
		return fmt.Errorf("there is no Service %s", name)
	}
	s := p.objects.Services[at]
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return fmt.Errorf("Service %s has type %s: a load balancer is planned for type LoadBalancer", name, s.Spec.Type) //nolint:staticcheck // a Service is a name
	}
	class := "none"
	if s.Spec.LoadBalancerClass != nil {
		class = *s.Spec.LoadBalancerClass
	}
	return fmt.Errorf("Service %s has the load balancer class %s, and --load-balancer-class is %q: the controller serves that one alone", //nolint:staticcheck // a Service is a name
		name, class, p.LoadBalancerClass)
}

// fill gives the pools their members, and returns those that stay as they are.
func (p *planning) fill(ctx context.Context) ([]view.Pool, error) {
	var left []view.Pool
	for _, pool := range p.cluster.Pools() {
		if !p.concerns(pool) || p.unknown(pool) {
			continue
		}
		if pool.Left != "" {
			left = append(left, view.Pool{BackendPool: pool.BackendPool, Why: pool.Left})
			continue
		}
		why, err := p.fillPool(ctx, pool)
		if err != nil {
			return nil, fmt.Errorf("BackendPool %s: %w", pool.BackendPool, err)
		}
		if why != "" {
			left = append(left, view.Pool{BackendPool: pool.BackendPool, Why: why})
		}
	}
	return left, nil
}

// fillPool does what an attempt of a lane would, and says why it would not.
func (p *planning) fillPool(ctx context.Context, pool kube.Pool) (why string, err error) {
	on, err := p.rehearsal.Shadow.GetLoadBalancer(ctx, pool.ID.LoadBalancer)
	if f := fault.From(err); f != nil && f.Class == fault.Stale {
		return "load balancer " + pool.ID.LoadBalancer.Name + " is not there", nil
	}
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(on.Pools, func(is lb.Pool) bool { return strings.EqualFold(is.ID.Name, pool.ID.Name) })
	if at < 0 {
		return "load balancer " + on.ID.Name + " has no pool " + pool.ID.Name, nil
	}
	desired, err := p.cluster.Desired(pool.Ref)
	if err != nil {
		return "", err
	}
	next, err := poolupdate.Rehearse(on.Pools[at], desired, p.cfg.SetsAdminState())
	if err != nil {
		return err.Error(), nil
	}
	p.rehearsal.Shadow.PutPool(next)
	return "", nil
}

// concerns reports whether a pool is that of a Service that was chosen, or of the nodes that
// one sends flows to.
func (p *planning) concerns(pool kube.Pool) bool {
	namespace, name, _ := strings.Cut(pool.Service, "/")
	if pool.Service != "" {
		return p.chosen(namespace, name)
	}
	if p.Namespace == "" {
		return true
	}
	return slices.ContainsFunc(p.results, func(r balancer.Result) bool {
		return r.Desired != nil && r.On.Key() == pool.ID.LoadBalancer.Key() &&
			slices.ContainsFunc(r.Desired.Pools, func(w service.Pool) bool { return strings.EqualFold(w.Name, pool.ID.Name) })
	})
}

// unknown reports whether the files do not say who the members of a pool are.
func (p *planning) unknown(pool kube.Pool) bool {
	return len(p.Files) > 0 && (len(p.objects.Nodes) == 0 || pool.Service != "" && len(p.objects.Slices) == 0)
}

// show makes the plan that people read.
func (p *planning) show(left []view.Pool) view.Plan {
	d := p.rehearsal.Shadow.Differences()
	shown := view.Of(d, p.owners)
	shown.Pools = left
	for _, s := range p.unasked {
		if s.Refused == "" {
			s.NoEffect = p.noEffect[s.Service]
		}
		shown.Serve(s, nil, nil)
	}
	taken := 0
	for _, r := range p.results {
		if r.Desired != nil && r.Err == nil && shown.Lose(r.Service, r.Shown, r.Addresses) {
			taken++
		}
		s := view.Service{Service: r.Service, Note: noteOf(r), NoEffect: p.noEffect[r.Service]}
		if r.Desired != nil {
			s.LoadBalancer = r.On.Name
		}
		if _, ofAzure := errors.AsType[*fault.Fault](r.Err); ofAzure {
			s.Failed = r.Err.Error()
		} else if r.Err != nil {
			s.Refused = r.Err.Error()
		}
		shown.Serve(s, r.Addresses, maps.Clone(d.Given))
	}
	shown.Notes, shown.Stops = p.notes(), p.stops(taken)
	return shown
}

// noteOf is what people should know of a result although all goes well.
func noteOf(r balancer.Result) string {
	notes := slices.DeleteFunc([]string{r.Note}, func(n string) bool { return n == "" })
	for _, k := range r.Kept {
		notes = append(notes, k.String())
	}
	return strings.Join(notes, "; ")
}

// others counts the chosen Services of type LoadBalancer.
func (p *planning) others() int {
	n := 0
	for i := range p.objects.Services {
		if s := &p.objects.Services[i]; s.Spec.Type == corev1.ServiceTypeLoadBalancer && p.chosen(s.Namespace, s.Name) {
			n++
		}
	}
	return n
}

// notes say what the files leave open, and that nothing is served where that may be a slip.
func (p *planning) notes() []string {
	var notes []string
	if others := p.others(); len(p.requests)+len(p.unasked)+len(p.objects.Pools) == 0 && others > 0 {
		notes = append(notes, fmt.Sprintf("%s of type LoadBalancer passed over: --load-balancer-class is %q; empty it means those without a class",
			counted(others, "Service"), p.LoadBalancerClass))
	}
	if len(p.Files) == 0 {
		return notes
	}
	switch {
	case len(p.objects.Nodes) == 0:
		notes = append(notes, "the files have no Nodes: no pool's members are planned")
	case len(p.objects.Slices) == 0:
		notes = append(notes, "the files have no EndpointSlices: the members of the Services' own pools are not planned")
	}
	for i := range p.objects.Services {
		if s := &p.objects.Services[i]; kube.Unborn(s) && p.chosen(s.Namespace, s.Name) {
			notes = append(notes, fmt.Sprintf("Service %s/%s has no UID yet: its names in Azure and its node ports are stand-ins", s.Namespace, s.Name))
		}
	}
	return notes
}
