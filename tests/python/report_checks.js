// What must hold of a report's page, asked of the page as it is laid out now. Evaluates to a
// function from `{ texts }`, texts from outside that the page shows, to a list of problems.
(({ texts }) => {
  const problems = [];
  const check = (good, problem) => { if (!good) problems.push(problem); };
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const few = (text) => JSON.stringify(text.trim().slice(0, 40));
  const WIDEST = document.documentElement.clientWidth;

  // Structure: what a reader who hears the page goes by.
  check(document.documentElement.lang === 'en', 'no language');
  check(document.title.includes('simshard'), `the title is ${few(document.title)}`);
  check(all('h1').length === 1, 'not one h1');
  check(all('main > section').length > 0, 'no sections');
  let level = 0;
  for (const heading of all('h1, h2, h3, h4, h5, h6')) {
    const next = Number(heading.tagName[1]);
    check(next <= level + 1, `heading ${few(heading.textContent)} jumps from ${level} to ${next}`);
    check(heading.textContent.trim() !== '', 'an empty heading');
    level = next;
  }
  const targets = all('nav a').map((link) => link.getAttribute('href').slice(1));
  const sections = all('main > section').map((section) => section.id);
  check(targets.join() === sections.join(), `links to ${targets}, sections ${sections}`);
  for (const section of all('main > section')) {
    const heading = document.getElementById(section.getAttribute('aria-labelledby'));
    check(section.contains(heading), `section ${section.id} has no heading`);
    check(section.querySelector('.lead p').textContent.includes('.'), `${section.id} explains nothing`);
    const body = section.querySelector('.body');
    check(body.checkVisibility() && body.offsetHeight > 10 && body.textContent.trim() !== '',
      `section ${section.id} shows nothing`);
  }
  for (const table of all('table')) {
    check(table.caption?.textContent, 'a table without a caption');
    check(all('th', table).every((cell) => cell.scope), `no scope in ${few(table.caption.textContent)}`);
  }
  const isLabelled = (svg) => svg.getAttribute('role') === 'img' && svg.getAttribute('aria-label');
  check(all('svg').every((svg) => svg.ariaHidden === 'true' || isLabelled(svg)), 'a picture without words');
  const ids = all('[id]').map((element) => element.id);
  check(new Set(ids).size === ids.length, 'an id is used twice');

  // Text from outside is text, and shows as it is.
  check(!all('script, iframe, object, embed, img, base, form, template').length, 'a foreign element');
  for (const element of all('*')) {
    const bad = element.getAttributeNames().find((name) => /^on|^srcdoc$|^style$/.test(name));
    check(!bad, `<${element.localName} ${bad}>`);
  }
  const shown = new Set(all('bdi').map((element) => element.innerText));
  for (const text of texts) check(shown.has(text), `${few(text)} is not shown as it is`);
  check(!('injected' in window), 'text from outside was run');

  // Nothing sticks out sideways, and no two labels of an axis overlap.
  const scroller = document.scrollingElement;
  check(scroller.scrollWidth <= WIDEST, `${scroller.scrollWidth} px wide on a screen of ${WIDEST}`);
  const visible = (element) => element.checkVisibility() && !element.closest('.unseen');
  const scrolls = (element) => element.parentElement.closest('.wide');
  for (const element of all('body *').filter(visible).filter((element) => !scrolls(element))) {
    const box = element.getBoundingClientRect();
    check(box.left >= -0.5 && box.right <= WIDEST + 0.5,
      `<${element.localName}> ${few(element.textContent)} sticks out: ${box.left} to ${box.right}`);
  }
  for (const axis of all('.axis svg')) {
    const boxes = all('text', axis).filter(visible).map((text) => text.getBoundingClientRect());
    const apart = boxes.every((box, index) => index === 0 || box.left > boxes[index - 1].right + 1);
    check(apart, `labels overlap on the axis of ${few(axis.closest('table').caption.textContent)}`);
  }

  // Bars are as long as the numbers beside them say, by the ticks of their axis.
  const number = (cell) => Number(cell.querySelector('data').value);
  const near = (a, b) => Math.abs(a - b) <= 1;
  for (const table of all('table.bars')) {
    const ticks = all('.axis text', table).map((text) => Number(text.dataset.value));
    for (const row of all('tbody tr', table)) {
      const count = number(row.querySelector('.number'));
      const width = row.querySelector('rect').getBBox().width;
      const places = all('line', row).map((line) => line.getBBox().x);
      const last = ticks.length - 1;
      const step = (places[last] - places[0]) / (ticks[last] - ticks[0]);
      const wanted = count === 0 ? 0 : places[0] + (count - ticks[0]) * step;
      check(near(width, wanted), `the bar of ${count} is ${width} px long, not ${wanted}`);
      check(count === 0 || width > 0, `no bar for ${count}`);
      check(row.querySelector('svg').clientWidth > 30, `the bar of ${count} has no room`);
    }
  }
  const stack = document.querySelector('.stack');
  if (stack) {
    const rows = all('#timings tbody tr');
    const bars = all('rect', stack);
    const total = number(document.querySelector('#timings tfoot'));
    let start = 0;
    check(rows.length === bars.length, 'not one bar for each phase');
    rows.forEach((row, index) => {
      const box = bars[index].getBBox();
      const wanted = (number(row) / total) * stack.clientWidth;
      check(near(box.width, wanted), `a phase is ${box.width} px long, not ${wanted}`);
      check(near(box.x, start), `a phase starts at ${box.x}, not ${start}`);
      const colour = (rect) => getComputedStyle(rect).fill;
      check(colour(bars[index]) === colour(row.querySelector('rect')), 'a phase has two colours');
      start += wanted;
    });
  }

  // The texts of a pair stand side by side, or one below the other where there is no room, and what differs is
  // marked by more than a colour.
  for (const pair of all('.pairs > li')) {
    const boxes = all('.side', pair).map((side) => side.getBoundingClientRect());
    check(boxes.length === 2, 'a pair has not two sides');
    const beside = boxes.length === 2 && boxes[0].right <= boxes[1].left && boxes[0].top === boxes[1].top;
    const below = boxes.length === 2 && boxes[0].bottom <= boxes[1].top;
    check(WIDEST > 640 ? beside : below, `the sides of ${few(pair.textContent)} are not where they should be`);
  }
  for (const mark of all('mark')) {
    const line = getComputedStyle(mark).textDecorationLine;
    check(line === 'underline', `${few(mark.textContent)} is marked by colour alone`);
  }

  // A fingerprint is decimal, as on the wire; its title shows its bits.
  for (const code of all('#crowded h3 code, #degenerate-fingerprints h3 code')) {
    const [hex] = code.title.split(' ');
    const decimal = /^\d+$/.test(code.textContent);
    check(decimal, `${few(code.textContent)} is no decimal number`);
    check(decimal && BigInt(`0x${hex}`) === BigInt(code.textContent),
      `${few(code.textContent)} is not ${hex}`);
  }

  // Contrast, by the formulas of WCAG 2: text AA, bars 3 to 1.
  const channels = (colour) => colour.match(/[\d.]+/g).map(Number);
  const luminance = (colour) => {
    const [red, green, blue] = channels(colour).map((value) => {
      const part = value / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      const alpha = channels(colour)[3] ?? 1;
      if (alpha === 1) return colour;
      check(alpha === 0, `<${at.localName}> is half transparent`);
    }
    return 'rgb(255, 255, 255)';
  };
  const contrast = (colour, element) => {
    const [dark, light] = [luminance(colour), luminance(behind(element))].sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  };
  for (const element of all('body *').filter(visible)) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!own) continue;
    const style = getComputedStyle(element);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const ratio = contrast(element instanceof SVGElement ? style.fill : style.color, element);
    check(ratio >= (large ? 3 : 4.5), `${few(element.textContent)} has a contrast of ${ratio}`);
  }
  for (const rect of all('rect').filter(visible)) {
    const ratio = contrast(getComputedStyle(rect).fill, rect);
    check(ratio >= 3, `a bar has a contrast of ${ratio}`);
  }
  return problems;
})
