// Asks again for the part of the page that changes, and swaps in what did. Everything
// works without it, by links and forms.
'use strict';
(() => {
  // Of a large fleet an answer takes a while: then it is asked for less often.
  const every = 3000, afterError = 10000, restFactor = 10;
  const main = document.getElementById('main'), said = document.getElementById('said');
  const live = document.getElementById('live'), asof = document.getElementById('asof');
  const parser = new DOMParser();
  let tag = main.dataset.tag, timer = 0, asking = null, paused = false;
  document.documentElement.classList.add('js');

  const say = (text) => { if (said.textContent !== text) said.textContent = text; };
  const spoken = () => new Map([...main.querySelectorAll('[data-say]')].map((e) => [e.dataset.say, e.textContent.trim()]));

  // Finds again what had the focus: by id, or the link to the same place.
  const again = (old) => {
    if (!old || old === document.body) return null;
    if (old.id) return document.getElementById(old.id);
    const href = old.getAttribute && old.getAttribute('href');
    return href ? [...main.querySelectorAll('a')].find((a) => a.getAttribute('href') === href) : null;
  };

  const swap = (html) => {
    const next = parser.parseFromString('<main>' + html + '</main>', 'text/html').querySelector('main');
    const focus = document.activeElement, before = spoken();
    const scrolls = [...main.querySelectorAll('.scroll')].map((e) => e.scrollLeft);
    const fresh = [...next.children], old = [...main.children];
    for (let i = 0; i < Math.max(fresh.length, old.length); i++) {
      if (!old[i]) main.append(fresh[i]);
      else if (!fresh[i]) old[i].remove();
      else if (old[i].outerHTML !== fresh[i].outerHTML && !(old[i].tagName === 'FORM' && old[i].contains(focus))) old[i].replaceWith(fresh[i]);
    }
    main.querySelectorAll('.scroll').forEach((e, i) => { e.scrollLeft = scrolls[i] || 0; });
    if (focus && !focus.isConnected) { const f = again(focus); if (f) f.focus({ preventScroll: true }); }
    const changed = [...spoken()].filter(([k, v]) => before.get(k) !== v).map(([, v]) => v.replace(/\s+/g, ' '));
    if (changed.length) say(changed.join('. '));
  };

  const wait = (ms) => { clearTimeout(timer); if (!paused && !('still' in main.dataset)) timer = setTimeout(ask, ms); };

  const ask = async () => {
    if (document.hidden) return;
    if (asking) asking.abort();
    const mine = asking = new AbortController();
    let next = every;
    const begin = performance.now();
    try {
      const headers = { 'Sluice-Part': 'main' };
      if (tag) headers['If-None-Match'] = tag;
      const res = await fetch(location.href, { headers, signal: mine.signal, cache: 'no-store' });
      if (res.ok) { const html = await res.text(); tag = res.headers.get('ETag'); swap(html); }
      if (res.ok || res.status === 304) {
        const at = res.headers.get('Sluice-As-Of');
        if (asof && at) { asof.dateTime = at; asof.textContent = at.slice(11, 19) + ' UTC'; }
        if (live.classList.contains('lost')) say('The controller answers again.');
        live.classList.remove('lost');
        next = Math.max(every, restFactor * (performance.now() - begin));
      } else throw new Error(res.status);
    } catch (e) {
      if (e.name === 'AbortError') return;
      live.classList.add('lost');
      say('The controller does not answer; asked again in ten seconds.');
      next = afterError;
    }
    wait(next);
  };

  const go = (url, push) => {
    history[push ? 'pushState' : 'replaceState'](null, '', url);
    tag = '';
    return ask();
  };

  if (!('still' in main.dataset)) {
    live.hidden = false;
    live.addEventListener('click', () => {
      paused = !paused;
      live.setAttribute('aria-pressed', String(!paused));
      live.textContent = paused ? 'paused' : 'live';
      if (paused) clearTimeout(timer); else ask();
    });
    document.addEventListener('visibilitychange', () => { if (!document.hidden && !paused) ask(); });
    addEventListener('popstate', () => { tag = ''; ask(); });
    wait(every);
  }

  // Filters act while one types; sorting and turning pages keep the place.
  const query = (form) => {
    const p = new URLSearchParams();
    for (const [k, v] of new FormData(form)) if (v) p.set(k, v);
    return location.pathname + (p.size ? '?' + p : '');
  };
  let typing = 0;
  main.addEventListener('input', (e) => {
    const form = e.target.closest('form.filter');
    if (!form) return;
    clearTimeout(typing);
    typing = setTimeout(() => go(query(form), false), e.target.tagName === 'SELECT' ? 0 : 250);
  });
  main.addEventListener('submit', (e) => {
    if (!e.target.matches('form.filter')) return;
    e.preventDefault();
    go(query(e.target), true);
  });
  main.addEventListener('click', (e) => {
    const a = e.target.closest('a[href^="?"]');
    if (!a || a.hasAttribute('download') || e.metaKey || e.ctrlKey || e.shiftKey) return;
    e.preventDefault();
    go(location.pathname + a.getAttribute('href'), true);
  });

  // A weight is written by who looks, at the API server, and only if nothing moved.
  const button = document.getElementById('apply');
  if (!button) return;
  const out = document.getElementById('applied');
  const root = location.pathname.replace(/\/ui\/[^/]*$/, '/');
  const json = async (path, method, body, type) => {
    const res = await fetch(root + path, { method, headers: body ? { 'Content-Type': type || 'application/json' } : {}, body: body && JSON.stringify(body) });
    const text = await res.text();
    let value = null;
    try { value = JSON.parse(text); } catch { /* not JSON: said as it is */ }
    return { ok: res.ok, status: res.status, value, says: (value && value.message) || text || res.statusText };
  };
  const { kind, name, weight, token } = button.dataset;
  const kinds = { clusterqueue: ['kueue.x-k8s.io', 'v1beta2', 'clusterqueues'], cohort: ['kueue.x-k8s.io', 'v1beta2', 'cohorts'] };
  const [group, version, plural] = kinds[kind];
  const object = 'apis/' + group + '/' + version + '/' + plural + '/' + encodeURIComponent(name);
  json('apis/authorization.k8s.io/v1/selfsubjectaccessreviews', 'POST', {
    apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectAccessReview',
    spec: { resourceAttributes: { group, resource: plural, verb: 'patch', name } },
  }).then((r) => {
    if (r.ok && r.value && r.value.status && r.value.status.allowed) button.hidden = false;
    else out.textContent = 'You may not change the weight of ' + name + '.';
  }).catch(() => { out.textContent = 'Whether you may change it could not be asked.'; });
  button.addEventListener('click', async () => {
    button.disabled = true;
    try {
      const now = await (await fetch('token', { cache: 'no-store' })).text();
      if (now.trim() !== token) { out.textContent = 'Not applied: the state has moved on. Preview again.'; return; }
      const is = await json(object, 'GET');
      if (!is.ok) { out.textContent = 'Not applied: ' + is.says; return; }
      const done = await json(object, 'PATCH', { metadata: { resourceVersion: is.value.metadata.resourceVersion }, spec: { fairSharing: { weight } } }, 'application/merge-patch+json');
      out.textContent = done.ok ? 'Applied: ' + name + ' weighs ' + weight + '.' : 'Not applied: ' + done.says;
      if (done.ok) button.hidden = true;
    } catch (e) {
      out.textContent = 'Not applied: ' + e.message;
    } finally { button.disabled = false; }
  });
})();
