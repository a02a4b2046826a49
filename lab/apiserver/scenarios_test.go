// SPDX-License-Identifier: Apache-2.0

package apiserver

type Scenario struct {
	Name      string
	exchanges []exchange
}

const (
	loadBalancer = `{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},"spec":{"type":"LoadBalancer","selector":{"app":"web"},"ports":[{"port":80}]}}`
	pool         = `{"apiVersion":"weir.dev/v1alpha1","kind":"BackendPool","metadata":{"name":"pool"},"spec":{"loadBalancer":{"name":"lb"},"poolName":"p","serviceRef":{"name":"web"}}}`
	lease        = `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"l"},"spec":{"holderIdentity":"a","leaseDurationSeconds":15}}`
	settings     = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","labels":{"a":"1"}},"data":{"k":"v"}}`
	slice        = `{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","metadata":{"name":"web-1","labels":{"kubernetes.io/service-name":"web"}},"addressType":"IPv4","endpoints":[{"addresses":["10.1.0.1"],"nodeName":"n1","conditions":{"ready":true}}],"ports":[{"port":80}]}`
)

func Scenarios() []Scenario {
	scenarios := basicScenarios()
	scenarios = append(scenarios, serviceScenarios()...)
	scenarios = append(scenarios, customResourceScenarios()...)
	return append(scenarios, otherScenarios()...)
}

func basicScenarios() []Scenario {
	return []Scenario{
		{"what is not there", []exchange{
			{"GET services/none", ""},
			{"GET backendpools/none", ""},
			{"PUT services/none/status", loadBalancer},
			{"PUT configmaps/none", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"none"}}`},
			{"PUT backendpools/none", `{"apiVersion":"weir.dev/v1alpha1","kind":"BackendPool","metadata":{"name":"none","resourceVersion":"1"},"spec":{"loadBalancer":{"name":"lb"},"poolName":"p","serviceRef":{"name":"web"}}}`},
			{"MERGE services/none", `{"metadata":{"labels":{"a":"1"}}}`},
			{"DELETE services/none", ""},
			{"GET /apis/weir.dev/v1alpha1/nothings", ""},
			{"GET /apis/nobody.example/v1/things", ""},
			{"POST /api/v1/namespaces/no-such-namespace/services", loadBalancer},
			{"APPLY /apis/weir.dev/v1alpha1/namespaces/${ns}/backendpools/none/status?fieldManager=m", `{"apiVersion":"weir.dev/v1alpha1","kind":"BackendPool","metadata":{"name":"none"},"status":{}}`},
		}},
		{"what is there already", []exchange{
			{"POST configmaps", settings},
			{"POST configmaps", settings},
			{"POST configmaps", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"other","namespace":"default"}}`},
			{"POST configmaps", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"other","resourceVersion":"3"}}`},
			{"POST configmaps", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"other"}}`},
			{"POST configmaps", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"Not A Name"}}`},
			{"POST configmaps", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{}}`},
			{"POST configmaps", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"made-"},"data":{"k":"v"}}`},
		}},
		{"a stale update", []exchange{
			{"POST configmaps", settings},
			{"PUT configmaps/c", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","resourceVersion":"${version}"},"data":{"k":"w"}}`},
			{"PUT configmaps/c", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","resourceVersion":"${first}"},"data":{"k":"x"}}`},
			{"MERGE configmaps/c", `{"metadata":{"resourceVersion":"${first}"},"data":{"k":"x"}}`},
			{"PUT configmaps/c", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"k":"x"}}`},
			{"PUT configmaps/c", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","uid":"00000000-0000-0000-0000-000000000000"},"data":{"k":"y"}}`},
			{"PUT configmaps/c", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"d"},"data":{"k":"y"}}`},
			{"GET configmaps/c", ""},
		}},
		{"writes that change nothing", []exchange{
			{"POST configmaps", settings},
			{"MERGE configmaps/c", `{"data":{"k":"v"}}`},
			{"MERGE configmaps/c?fieldManager=compare", `{}`},
			{"PUT configmaps/c", settings},
			{"MERGE configmaps/c?fieldManager=somebody", `{"data":{"k":"v"}}`},
		}},
		{"patches", []exchange{
			{"POST configmaps", settings},
			{"MERGE configmaps/c", `{"metadata":{"annotations":{"x":"y"}},"data":{"k":null,"l":"m"}}`},
			{"JSON configmaps/c", `[{"op":"add","path":"/data/n","value":"o"}]`},
			{"JSON configmaps/c", `[{"op":"test","path":"/data/n","value":"p"}]`},
			{"JSON configmaps/c", `[{"op":"remove","path":"/data/none"}]`},
			{"STRATEGIC configmaps/c", `{"data":{"q":"r"}}`},
			{"MERGE configmaps/c", `{"metadata":{"labels":{"not a key":"1"}}}`},
			{"MERGE configmaps/c?dryRun=All", `{"data":{"s":"t"}}`},
			{"GET configmaps/c", ""},
		}},
		{"finalizers", []exchange{
			{"POST configmaps", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","finalizers":["example.com/a","example.com/b"]}}`},
			{"DELETE configmaps/c", ""},
			{"DELETE configmaps/c", ""},
			{"MERGE configmaps/c", `{"metadata":{"finalizers":["example.com/b","example.com/c"]}}`},
			{"MERGE configmaps/c", `{"metadata":{"deletionTimestamp":null,"labels":{"still":"there"}}}`},
			{"MERGE configmaps/c", `{"metadata":{"finalizers":["example.com/b"]}}`},
			{"MERGE configmaps/c", `{"metadata":{"finalizers":null}}`},
			{"GET configmaps/c", ""},
			{"WATCH configmaps?resourceVersion=${first}", ""},
		}},
		{"delete with preconditions", []exchange{
			{"POST configmaps", settings},
			{"DELETE configmaps/c", `{"preconditions":{"uid":"00000000-0000-0000-0000-000000000000"}}`},
			{"MERGE configmaps/c", `{"data":{"k":"w"}}`},
			{"DELETE configmaps/c", `{"preconditions":{"resourceVersion":"${first}"}}`},
			{"DELETE configmaps/c?dryRun=All", ""},
			{"DELETE configmaps/c", `{"preconditions":{"uid":"${uid}","resourceVersion":"${version}"},"propagationPolicy":"Background"}`},
			{"GET configmaps/c", ""},
		}},
		{"selectors", []exchange{
			{"POST configmaps", settings},
			{"POST configmaps", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b","labels":{"a":"2"}}}`},
			{"GET configmaps?labelSelector=a%3D1", ""},
			{"GET configmaps?labelSelector=a+in+(1,2)", ""},
			{"GET configmaps?labelSelector=!a", ""},
			{"GET configmaps?labelSelector=a%3D%3D%3D1", ""},
			{"GET configmaps?fieldSelector=metadata.name%3Db", ""},
			{"GET configmaps?fieldSelector=data.k%3Dv", ""},
			{"MERGE configmaps/c", `{"metadata":{"labels":{"a":"2"}}}`},
			{"MERGE configmaps/b", `{"metadata":{"labels":{"a":"1"}}}`},
			{"DELETE configmaps/b", ""},
			{"WATCH configmaps?labelSelector=a%3D1&resourceVersion=${first}", ""},
			{"WATCH configmaps?fieldSelector=metadata.name%3Db&resourceVersion=${first}", ""},
		}},
		{"watches", []exchange{
			{"POST configmaps", settings},
			{"MERGE configmaps/c", `{"data":{"k":"w"}}`},
			{"WATCH configmaps?resourceVersion=${first}", ""},
			{"WATCH configmaps?resourceVersion=0&labelSelector=a", ""},
			{"WATCH configmaps?labelSelector=a", ""},
			{"WATCH configmaps?labelSelector=a&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", ""},
			{"WATCH configmaps?labelSelector=a&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=${first}", ""},
			{"WATCH configmaps?sendInitialEvents=true&allowWatchBookmarks=true", ""},
			{"WATCH configmaps?resourceVersion=word", ""},
			{"GET configmaps?resourceVersion=word", ""},
			{"GET configmaps?resourceVersion=0&labelSelector=a", ""},
		}},
	}
}

func serviceScenarios() []Scenario {
	web := func(spec string) string {
		return `{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},"spec":` + spec + `}`
	}
	return []Scenario{
		{"a load balancer's life", []exchange{
			{"POST services", loadBalancer},
			{"MERGE services/web", `{"metadata":{"finalizers":["example.com/f"]}}`},
			{"MERGE services/web/status?fieldManager=m", `{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}},"spec":{"type":"ClusterIP"}}`},
			{"MERGE services/web/status?fieldManager=m", `{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}},"spec":{"selector":null}}`},
			{"MERGE services/web", `{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.2"}]}}}`},
			{"STRATEGIC services/web/status?fieldManager=m", `{"status":{"conditions":[{"type":"A","status":"True","reason":"R","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`},
			{"STRATEGIC services/web/status?fieldManager=m", `{"status":{"conditions":[{"type":"B","status":"True","reason":"R","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`},
			{"STRATEGIC services/web/status?fieldManager=m", `{"status":{"conditions":[{"$patch":"delete","type":"A"}]}}`},
			{"DELETE services/web", ""},
			{"MERGE services/web/status", `{"status":{"loadBalancer":{"ingress":null}}}`},
			{"MERGE services/web", `{"metadata":{"finalizers":null}}`},
			{"GET services/web", ""},
			{"WATCH services?resourceVersion=${first}", ""},
		}},
		{"types come and go", []exchange{
			{"POST services", loadBalancer},
			{"MERGE services/web/status", `{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}}}`},
			{"MERGE services/web", `{"spec":{"type":"ClusterIP"}}`},
			{"MERGE services/web", `{"spec":{"type":"NodePort"}}`},
			{"MERGE services/web", `{"spec":{"type":"LoadBalancer","externalTrafficPolicy":"Local"}}`},
			{"MERGE services/web", `{"spec":{"externalTrafficPolicy":"Cluster"}}`},
			{"MERGE services/web", `{"spec":{"type":"ExternalName","externalName":"example.com"}}`},
			{"MERGE services/web", `{"spec":{"type":"LoadBalancer","externalName":null}}`},
			{"DELETE services/web", ""},
		}},
		{"ports", []exchange{
			{"POST services", web(`{"type":"NodePort","ports":[{"name":"a","port":80,"nodePort":30080},{"name":"b","port":443,"protocol":"TCP","targetPort":"https"},{"name":"c","port":443,"protocol":"UDP"}]}`)},
			{"STRATEGIC services/web", `{"spec":{"ports":[{"port":80,"targetPort":8080}]}}`},
			{"MERGE services/web", `{"spec":{"ports":[{"name":"a","port":80},{"name":"d","port":81}]}}`},
			{"POST services", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"two"},"spec":{"type":"NodePort","ports":[{"port":80,"nodePort":30080}]}}`},
			{"MERGE services/web", `{"spec":{"ports":[{"port":80},{"port":81}]}}`},
			{"MERGE services/web", `{"spec":{"ports":null}}`},
			{"MERGE services/web", `{"spec":{"ports":[{"port":80,"nodePort":80}]}}`},
			{"MERGE services/web", `{"spec":{"ports":[{"port":0}]}}`},
			{"MERGE services/web", `{"spec":{"ports":[{"port":80,"protocol":"ICMP"}]}}`},
			{"DELETE services/web", ""},
			{"POST services", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"two"},"spec":{"type":"NodePort","ports":[{"port":80,"nodePort":30080}]}}`},
			{"DELETE services/two", ""},
		}},
		{"node ports that nobody wants", []exchange{
			{"POST services", web(`{"type":"LoadBalancer","allocateLoadBalancerNodePorts":false,"externalTrafficPolicy":"Local","sessionAffinity":"ClientIP","ports":[{"port":80}]}`)},
			{"MERGE services/web", `{"spec":{"allocateLoadBalancerNodePorts":true}}`},
			{"MERGE services/web", `{"spec":{"healthCheckNodePort":30999}}`},
			{"MERGE services/web", `{"spec":{"sessionAffinity":"None"}}`},
		}},
		{"a class stays", []exchange{
			{"POST services", web(`{"type":"LoadBalancer","loadBalancerClass":"weir.dev/azure","ports":[{"port":80}]}`)},
			{"MERGE services/web", `{"spec":{"loadBalancerClass":"example.com/other"}}`},
			{"MERGE services/web", `{"spec":{"loadBalancerClass":null}}`},
			{"MERGE services/web", `{"spec":{"type":"NodePort"}}`},
			{"MERGE services/web", `{"spec":{"loadBalancerClass":"weir.dev/azure"}}`},
			{"MERGE services/web", `{"spec":{"type":"LoadBalancer","loadBalancerClass":"example.com/other"}}`},
			{"MERGE services/web", `{"spec":{"clusterIP":"10.0.0.77","clusterIPs":["10.0.0.77"]}}`},
			{"PUT services/web", loadBalancer},
			{"PUT services/web", web(`{"type":"LoadBalancer","loadBalancerClass":"example.com/other","ports":[{"port":80}]}`)},
		}},
		{"services without load balancers", []exchange{
			{"POST services", web(`{"ports":[{"port":80}]}`)},
			{"MERGE services/web", `{"spec":{"externalTrafficPolicy":"Local"}}`},
			{"MERGE services/web", `{"spec":{"externalIPs":["192.0.2.9"]}}`},
			{"POST services", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"headless"},"spec":{"clusterIP":"None","selector":{"a":"b"}}}`},
			{"POST services", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"bare"},"spec":{"clusterIP":"None"}}`},
			{"POST services", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"ext"},"spec":{"type":"ExternalName","externalName":"example.com"}}`},
			{"POST services", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"bad"},"spec":{"type":"Nonsense","ports":[{"port":80}]}}`},
			{"POST services", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"bad"},"spec":{"loadBalancerClass":"a/b","ports":[{"port":80}]}}`},
			{"POST services", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"9bad"},"spec":{"ports":[{"port":80}]}}`},
			{"POST services?dryRun=All", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"dry"},"spec":{"ports":[{"port":80}]}}`},
			{"GET services/dry", ""},
			{"GET services?fieldSelector=spec.type%3DExternalName", ""},
		}},
	}
}

func customResourceScenarios() []Scenario {
	const poolStatus = `{"apiVersion":"weir.dev/v1alpha1","kind":"BackendPool","metadata":{"name":"pool"},"status":{"desired":%,"conditions":[{"type":"Synced","status":"True","reason":"R","message":"m","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`
	with := replacePercent
	return []Scenario{
		{"pruned and filled in", []exchange{
			{"POST backendpools", `{"apiVersion":"weir.dev/v1alpha1","kind":"BackendPool","metadata":{"name":"pool"},"spec":{"loadBalancer":{"name":"lb","nobody":"knows"},"poolName":"p","serviceRef":{"name":"web"},"this":1},"status":{"desired":3},"root":true}`},
			{"MERGE backendpools/pool", `{"spec":{"ipFamily":null}}`},
			{"MERGE backendpools/pool", `{"metadata":{"labels":{"a":"b"}}}`},
			{"MERGE backendpools/pool", `{"spec":{"serviceRef":{"name":"other"}}}`},
			{"MERGE backendpools/pool", `{"status":{"desired":3}}`},
			{"STRATEGIC backendpools/pool", `{"spec":{"serviceRef":{"name":"other"}}}`},
			{"PUT backendpools/pool", pool},
			{"GET backendpools/pool/status", ""},
		}},
		{"refused", []exchange{
			{"POST backendpools", `{"apiVersion":"weir.dev/v1alpha1","kind":"BackendPool","metadata":{"name":"pool"},"spec":{"loadBalancer":{"name":"lb"},"poolName":"p"}}`},
			{"POST backendpools", `{"apiVersion":"weir.dev/v1alpha1","kind":"BackendPool","metadata":{"name":"pool"},"spec":{"loadBalancer":{"name":"-"},"poolName":"p","serviceRef":{"name":"w"}}}`},
			{"POST backendpools", `{"apiVersion":"weir.dev/v1alpha1","kind":"BackendPool","metadata":{"name":"pool"},"spec":{"loadBalancer":{},"poolName":7,"serviceRef":{"name":"w"}}}`},
			{"POST backendpools", `{"apiVersion":"weir.dev/v1alpha1","kind":"BackendPool","metadata":{"name":"pool"},"spec":{"ipFamily":"IPv5","loadBalancer":{"name":"lb"},"poolName":"p","serviceRef":{"name":""}}}`},
			{"POST backendpools", `{"apiVersion":"weir.dev/v1","kind":"BackendPool","metadata":{"name":"pool"},"spec":{}}`},
			{"POST backendpools", pool},
			{"MERGE backendpools/pool", `{"spec":{"poolName":"q"}}`},
			{"MERGE backendpools/pool", `{"spec":{"nodes":{"selector":{}}}}`},
			{"MERGE backendpools/pool", `{"spec":{"serviceRef":null,"nodes":{"selector":{"matchLabels":{"a":"b"}}}}}`},
			{"MERGE backendpools/pool/status", `{"status":{"desired":"many"}}`},
		}},
		{"status and spec", []exchange{
			{"POST backendpools", pool},
			{"MERGE backendpools/pool/status?fieldManager=m", `{"metadata":{"labels":{"a":"b"}},"spec":{"poolName":"q"},"status":{"desired":2}}`},
			{"MERGE backendpools/pool/status?fieldManager=m", `{"status":{"desired":2}}`},
			{"PUT backendpools/pool/status", `{"apiVersion":"weir.dev/v1alpha1","kind":"BackendPool","metadata":{"name":"pool","resourceVersion":"${version}"},"status":{"desired":3}}`},
			{"MERGE backendpools/pool", `{"metadata":{"finalizers":["weir.dev/f"],"annotations":{"a":"b"}}}`},
			{"DELETE backendpools/pool", ""},
			{"MERGE backendpools/pool/status", `{"status":{"desired":4}}`},
			{"MERGE backendpools/pool", `{"metadata":{"finalizers":[]}}`},
			{"GET backendpools/pool", ""},
			{"WATCH backendpools?resourceVersion=${first}", ""},
		}},
		{"applied by two", []exchange{
			{"APPLY backendpools/pool?fieldManager=one", pool},
			{"APPLY backendpools/pool?fieldManager=one", pool},
			{"APPLY backendpools/pool", pool},
			{"APPLY backendpools/pool/status?fieldManager=weir&force=true", with(poolStatus, "1")},
			{"APPLY backendpools/pool/status?fieldManager=weir&force=true", with(poolStatus, "1")},
			{"APPLY backendpools/pool/status?fieldManager=other", with(poolStatus, "2")},
			{"APPLY backendpools/pool/status?fieldManager=other&force=true", with(poolStatus, "2")},
			{"APPLY backendpools/pool/status?fieldManager=weir&force=true", `{"apiVersion":"weir.dev/v1alpha1","kind":"BackendPool","metadata":{"name":"pool"},"status":{"observed":1}}`},
			{"APPLY backendpools/pool?fieldManager=two", `{"apiVersion":"weir.dev/v1alpha1","kind":"BackendPool","metadata":{"name":"pool","labels":{"a":"b"}},"spec":{"serviceRef":{"name":"other"}}}`},
			{"APPLY backendpools/pool?fieldManager=two&dryRun=All&force=true", `{"apiVersion":"weir.dev/v1alpha1","kind":"BackendPool","metadata":{"name":"pool","labels":{"a":"b"}},"spec":{"serviceRef":{"name":"other"}}}`},
			{"APPLY backendpools/pool?fieldManager=two", `{"apiVersion":"weir.dev/v1alpha1","kind":"BackendPool","metadata":{"name":"pool","labels":{"a":"b"}}}`},
			{"APPLY backendpools/pool?fieldManager=two", `{"apiVersion":"weir.dev/v1alpha1","kind":"BackendPool","metadata":{"name":"pool"}}`},
			{"APPLY backendpools/pool?fieldManager=two", `{"apiVersion":"weir.dev/v1alpha1","kind":"BackendPool","metadata":{"name":"pool","resourceVersion":"1"},"spec":{"serviceRef":{"name":"web"}}}`},
			{"APPLY backendpools/pool?fieldManager=two&force=true", `{"apiVersion":"weir.dev/v1alpha1","kind":"BackendPool","metadata":{"name":"pool"},"spec":{"nobody":"knows"}}`},
		}},
		{"applied after an update", []exchange{
			{"POST services", loadBalancer},
			{"APPLY services/web?fieldManager=two", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},"spec":{"type":"LoadBalancer","ports":[{"port":80},{"name":"tls","port":443}]}}`},
			{"APPLY services/web?fieldManager=two", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},"spec":{"type":"NodePort"}}`},
			{"APPLY services/web?fieldManager=two&force=true", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},"spec":{"type":"NodePort"}}`},
			{"APPLY services/new?fieldManager=two", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"new"},"spec":{"ports":[{"port":80}]}}`},
		}},
	}
}

func otherScenarios() []Scenario {
	return []Scenario{
		{"leases", []exchange{
			{"POST leases", lease},
			{"PUT leases/l", `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"l","resourceVersion":"${version}"},"spec":{"holderIdentity":"b","leaseDurationSeconds":15}}`},
			{"PUT leases/l", `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"l","resourceVersion":"${first}"},"spec":{"holderIdentity":"c"}}`},
			{"PUT leases/l", `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"l"},"spec":{"holderIdentity":"c"}}`},
			{"PUT leases/m", `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"m"},"spec":{"holderIdentity":"c"}}`},
			{"DELETE leases/l", ""},
		}},
		{"slices", []exchange{
			{"POST endpointslices", slice},
			{"MERGE endpointslices/web-1", `{"endpoints":[{"addresses":["10.1.0.2"],"nodeName":"n2","conditions":{"ready":false}}]}`},
			{"MERGE endpointslices/web-1", `{"metadata":{"labels":{"a":"b"}}}`},
			{"MERGE endpointslices/web-1", `{"metadata":{"annotations":{"a":"b"}}}`},
			{"MERGE endpointslices/web-1", `{"metadata":{"finalizers":["example.com/f"]}}`},
			{"MERGE endpointslices/web-1", `{"metadata":{"finalizers":null}}`},
			{"MERGE endpointslices/web-1", `{"addressType":"IPv6"}`},
			{"POST endpointslices", `{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","metadata":{"name":"none"},"endpoints":[]}`},
			{"GET endpointslices?labelSelector=kubernetes.io/service-name%3Dweb", ""},
			{"DELETE endpointslices/web-1", ""},
		}},
		{"nodes", []exchange{
			{"POST nodes", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"${ns}","labels":{"a":"b"}},"spec":{"providerID":"azure:///x"},"status":{"addresses":[{"type":"InternalIP","address":"10.0.0.4"}]}}`},
			{"MERGE nodes/${ns}/status", `{"status":{"addresses":[{"type":"InternalIP","address":"10.0.0.5"}]}}`},
			{"STRATEGIC nodes/${ns}/status", `{"status":{"conditions":[{"type":"Ready","status":"True"}]},"spec":{"unschedulable":true}}`},
			{"MERGE nodes/${ns}", `{"spec":{"taints":[{"key":"k","effect":"NoSchedule"}]},"status":{"addresses":null}}`},
			{"MERGE nodes/${ns}", `{"spec":{"providerID":"azure:///y"}}`},
			{"MERGE nodes/${ns}", `{"spec":{"unschedulable":true}}`},
			{"DELETE nodes/${ns}", ""},
		}},
		{"namespaces", []exchange{
			{"GET namespaces/${ns}", ""},
			{"MERGE namespaces/${ns}", `{"metadata":{"annotations":{"a":"b"}}}`},
			{"MERGE namespaces/${ns}", `{"metadata":{"labels":null}}`},
			{"POST configmaps", settings},
			{"DELETE namespaces/${ns}", ""},
			{"POST services", loadBalancer},
			{"MERGE namespaces/${ns}", `{"metadata":{"annotations":{"a":"c"}}}`},
		}},
		{"events", []exchange{
			{"POST events", `{"apiVersion":"v1","kind":"Event","metadata":{"name":"e"},"involvedObject":{"kind":"Service","namespace":"${ns}","name":"web"},"reason":"R","message":"m","type":"Warning","source":{"component":"weir"},"firstTimestamp":"2026-01-01T00:00:00Z","lastTimestamp":"2026-01-01T00:00:00Z","count":1}`},
			{"STRATEGIC events/e", `{"count":2}`},
			{"MERGE events/none", `{"count":2}`},
			{"GET events?fieldSelector=reason%3DR,type%3DWarning", ""},
			{"GET events?fieldSelector=involvedObject.kind%3DNode", ""},
			{"GET events?fieldSelector=source%3Dweir", ""},
		}},
	}
}
