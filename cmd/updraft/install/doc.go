// Package install is updraft preflight, install and uninstall: one command each
// to see whether a cluster has what Updraft needs, to put it there or renew it,
// and to take it away.
//
// It promises that nothing is applied while something is missing, that all that
// is missing is said at once, and that each problem says what to do; that an
// installation over an older one renews it and keeps its settings; that no CRD is
// deleted while there is an object of it, and that after uninstall a cluster has
// what it had before.
//
// It knows its own objects by a label and by who applied them. Whoever calls it
// needs the rights of a cluster admin; preflight says which are missing.
package install
