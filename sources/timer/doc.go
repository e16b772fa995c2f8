// Package timer rings the alarms and polls that are PingSource objects where no Knative runs: Knative's own cron for PingSources,
// driven by a watch on the objects of all namespaces.
//
// What it promises is what Knative's adapter does: the event of the object, with its extensions and data, within half a second after
// its second (the cron spreads them), tried for about three seconds and then lost; nothing for what was due while nobody ran. Times
// without a timezone are UTC, as in a cluster's pods. A PingSource that a webhook would have refused is logged and never rings.
//
// Nothing writes the objects' status.
package timer
