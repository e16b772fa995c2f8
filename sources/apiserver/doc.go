// Package apiserver turns changes of Kubernetes objects into events where no Knative runs: it runs the adapter of Knative's
// ApiServerSource in this process, set up by the same ApiServerSource object that a cluster gets.
//
// What it promises is what that adapter promises (nothing is sent for objects that exist already; an event that the sink does not
// take within about three seconds is lost; order holds within a kind only), and beyond it:
//
//   - Ready is called once every watch is open: a change that is made after it always yields an event. The adapter itself gives no
//     such sign, and swallows what happens before its watches are open.
//   - A kind that the API server does not serve is an error. The adapter would leave it out in silence.
//   - An event that is lost is logged.
//
// Unlike on a cluster, the namespaces of a selector are looked up once, at the start; an empty selector means all, later ones too.
package apiserver
